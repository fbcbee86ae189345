"""The tables and figures of the paper, made again with the public interface and with the methods it compares to."""
