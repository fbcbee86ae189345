"""Speed, memory and accuracy, measured through the public interface; not part of the wheel."""
