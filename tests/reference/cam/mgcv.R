# Reference p-values of the smooth terms of additive models, as CAM's selGam computes them.
#
#   Rscript mgcv.R INPUTS pvalues.csv
#
# INPUTS is the folder that inputs.py wrote: graphs.csv (dataset, graph, node, parent; columns counted from 0) and one
# table <dataset>.csv without header for every dataset. Made with R 4.2.2 and mgcv 1.8-41 (Debian 12).
suppressPackageStartupMessages(library(mgcv))
arguments <- commandArgs(trailingOnly = TRUE)
edges <- read.csv(file.path(arguments[1], "graphs.csv"), stringsAsFactors = FALSE)

test_node <- function(X, node, parents, k = 10) {
  n <- nrow(X); p <- length(parents)
  # CAM: at least three rows per basis function.
  if (n / p < 3 * k) k <- ceiling(n / (3 * p))
  data <- data.frame(y = X[, node + 1], X[, parents + 1, drop = FALSE])
  names(data) <- c("y", paste0("x", seq_len(p)))
  # mgcv itself refuses k above the number of distinct values.
  size <- sapply(data[-1], function(x) min(k, length(unique(x))))
  terms <- paste0("s(x", seq_len(p), ", k = ", size, ")", collapse = " + ")
  model <- suppressWarnings(gam(as.formula(paste("y ~", terms)), data = data))
  data.frame(parent = parents, summary(model)$s.table)
}

rows <- list()
for (dataset in unique(edges$dataset)) {
  X <- as.matrix(read.csv(file.path(arguments[1], paste0(dataset, ".csv")), header = FALSE))
  for (graph in unique(edges$graph[edges$dataset == dataset])) {
    here <- edges[edges$dataset == dataset & edges$graph == graph, ]
    for (node in unique(here$node)) {
      found <- test_node(X, node, here$parent[here$node == node])
      names(found) <- c("parent", "edf", "ref_df", "F", "p")
      rows[[length(rows) + 1]] <- data.frame(dataset, graph, node, found)
    }
  }
}
table <- do.call(rbind, rows)
for (column in c("edf", "ref_df", "F", "p")) table[[column]] <- formatC(table[[column]], digits = 6, format = "g")
write.csv(table, arguments[2], row.names = FALSE, quote = FALSE)
