MemcpyHtoD,0x00007efe7b500000,4096
kernel-1.traceg
MemcpyHtoD,0x00007efe7b600000,256
kernel-2-ctx_0x55d0.traceg.xz
