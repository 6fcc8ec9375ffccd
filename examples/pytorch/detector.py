"""A detector like YOLOv2: 21 convolutions with random weights, one frame of 416 x 416 at a time, float32."""
from timing import argument_parser, import_torch, serve

# Channels and size of each convolution of Darknet-19 and the detector's head; M: halve the picture.
LAYERS = [(32, 3), "M", (64, 3), "M", (128, 3), (64, 1), (128, 3), "M", (256, 3), (128, 1), (256, 3), "M",
          (512, 3), (256, 1), (512, 3), (256, 1), (512, 3), "M", (1024, 3), (512, 1), (1024, 3), (512, 1), (1024, 3),
          (1024, 3), (1024, 3)]
BOXES, CLASSES = 5, 80


def detector(nn):
    layers, channels = [], 3
    for layer in LAYERS:
        if layer == "M":
            layers.append(nn.MaxPool2d(2))
            continue
        out, size = layer
        layers += [nn.Conv2d(channels, out, size, padding=size // 2, bias=False), nn.BatchNorm2d(out), nn.LeakyReLU(0.1)]
        channels = out
    layers.append(nn.Conv2d(channels, BOXES * (5 + CLASSES), 1))
    return nn.Sequential(*layers)


def main():
    arguments = argument_parser(__doc__).parse_args()
    torch = import_torch()
    serve(torch, detector(torch.nn), torch.rand(1, 3, 416, 416), arguments)


if __name__ == "__main__":
    main()
