// Breadth-first search by levels. bfs_expand: every node of the frontier gives its unvisited
// neighbours their cost and marks them; bfs_advance: marked nodes become the next frontier, and
// `more` is raised.
#include "demarc_kernel.cuh"

struct Node {
  int start;
  int count;
};

DEMARC_KERNEL bfs_expand(const Node* nodes, const int* edges, unsigned char* frontier,
                         unsigned char* updating, const unsigned char* visited, int* cost,
                         int count) {
  const int node = blockIdx.x * blockDim.x + threadIdx.x;
  if (node >= count || frontier[node] == 0) return;
  frontier[node] = 0;
  for (int i = nodes[node].start; i < nodes[node].start + nodes[node].count; ++i) {
    const int next = edges[i];
    if (visited[next] == 0) {
      cost[next] = cost[node] + 1;
      updating[next] = 1;
    }
  }
}

DEMARC_KERNEL bfs_advance(unsigned char* frontier, unsigned char* updating, unsigned char* visited,
                          unsigned char* more, int count) {
  const int node = blockIdx.x * blockDim.x + threadIdx.x;
  if (node >= count || updating[node] == 0) return;
  frontier[node] = 1;
  visited[node] = 1;
  *more = 1;
  updating[node] = 0;
}
