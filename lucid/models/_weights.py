"""Published weights: one row per tag. Written down from torchvision's own tables; names of files end in the first digits of
their SHA-256.

Columns: torchvision's name, tag, file, kind of preprocessing, size of the shorter side, crop, interpolation, normalisation,
metric, licence where it differs from the code's or "-", and which tag is the default.
"""

# ruff: noqa: E501
ROWS = """
alexnet IMAGENET1K_V1 alexnet-owt-7be5be79.pth classify 256 224 bilinear imagenet acc@1=56.522 - default
convnext_base IMAGENET1K_V1 convnext_base-6075fbad.pth classify 232 224 bilinear imagenet acc@1=84.062 - default
convnext_large IMAGENET1K_V1 convnext_large-ea097f82.pth classify 232 224 bilinear imagenet acc@1=84.414 - default
convnext_small IMAGENET1K_V1 convnext_small-0c510722.pth classify 230 224 bilinear imagenet acc@1=83.616 - default
convnext_tiny IMAGENET1K_V1 convnext_tiny-983f1562.pth classify 236 224 bilinear imagenet acc@1=82.52 - default
deeplabv3_mobilenet_v3_large COCO_WITH_VOC_LABELS_V1 deeplabv3_mobilenet_v3_large-fc3c493d.pth segment 520 - - imagenet miou=60.3 - default
deeplabv3_resnet101 COCO_WITH_VOC_LABELS_V1 deeplabv3_resnet101_coco-586e9e4e.pth segment 520 - - imagenet miou=67.4 - default
deeplabv3_resnet50 COCO_WITH_VOC_LABELS_V1 deeplabv3_resnet50_coco-cd0a2569.pth segment 520 - - imagenet miou=66.4 - default
densenet121 IMAGENET1K_V1 densenet121-a639ec97.pth classify 256 224 bilinear imagenet acc@1=74.434 - default
densenet161 IMAGENET1K_V1 densenet161-8d451a50.pth classify 256 224 bilinear imagenet acc@1=77.138 - default
densenet169 IMAGENET1K_V1 densenet169-b2777c0a.pth classify 256 224 bilinear imagenet acc@1=75.6 - default
densenet201 IMAGENET1K_V1 densenet201-c1103571.pth classify 256 224 bilinear imagenet acc@1=76.896 - default
efficientnet_b0 IMAGENET1K_V1 efficientnet_b0_rwightman-7f5810bc.pth classify 256 224 bicubic imagenet acc@1=77.692 - default
efficientnet_b1 IMAGENET1K_V1 efficientnet_b1_rwightman-bac287d4.pth classify 256 240 bicubic imagenet acc@1=78.642 -
efficientnet_b1 IMAGENET1K_V2 efficientnet_b1-c27df63c.pth classify 255 240 bilinear imagenet acc@1=79.838 - default
efficientnet_b2 IMAGENET1K_V1 efficientnet_b2_rwightman-c35c1473.pth classify 288 288 bicubic imagenet acc@1=80.608 - default
efficientnet_b3 IMAGENET1K_V1 efficientnet_b3_rwightman-b3899882.pth classify 320 300 bicubic imagenet acc@1=82.008 - default
efficientnet_b4 IMAGENET1K_V1 efficientnet_b4_rwightman-23ab8bcd.pth classify 384 380 bicubic imagenet acc@1=83.384 - default
efficientnet_b5 IMAGENET1K_V1 efficientnet_b5_lukemelas-1a07897c.pth classify 456 456 bicubic imagenet acc@1=83.444 - default
efficientnet_b6 IMAGENET1K_V1 efficientnet_b6_lukemelas-24a108a5.pth classify 528 528 bicubic imagenet acc@1=84.008 - default
efficientnet_b7 IMAGENET1K_V1 efficientnet_b7_lukemelas-c5b4e57e.pth classify 600 600 bicubic imagenet acc@1=84.122 - default
efficientnet_v2_l IMAGENET1K_V1 efficientnet_v2_l-59c71312.pth classify 480 480 bicubic half acc@1=85.808 - default
efficientnet_v2_m IMAGENET1K_V1 efficientnet_v2_m-dc08266a.pth classify 480 480 bilinear imagenet acc@1=85.112 - default
efficientnet_v2_s IMAGENET1K_V1 efficientnet_v2_s-dd5fe13b.pth classify 384 384 bilinear imagenet acc@1=84.228 - default
fasterrcnn_resnet50_fpn COCO_V1 fasterrcnn_resnet50_fpn_coco-258fb6c6.pth detect - - - - box_map=37.0 - default
fcn_resnet101 COCO_WITH_VOC_LABELS_V1 fcn_resnet101_coco-7ecb50ca.pth segment 520 - - imagenet miou=63.7 - default
fcn_resnet50 COCO_WITH_VOC_LABELS_V1 fcn_resnet50_coco-1167a1af.pth segment 520 - - imagenet miou=60.5 - default
googlenet IMAGENET1K_V1 googlenet-1378be20.pth classify 256 224 bilinear imagenet acc@1=69.778 - default
inception_v3 IMAGENET1K_V1 inception_v3_google-0cc3c7bd.pth classify 342 299 bilinear imagenet acc@1=77.294 - default
maskrcnn_resnet50_fpn COCO_V1 maskrcnn_resnet50_fpn_coco-bf2d0c1e.pth detect - - - - box_map=37.9 - default
mobilenet_v2 IMAGENET1K_V1 mobilenet_v2-b0353104.pth classify 256 224 bilinear imagenet acc@1=71.878 -
mobilenet_v2 IMAGENET1K_V2 mobilenet_v2-7ebf99e0.pth classify 232 224 bilinear imagenet acc@1=72.154 - default
mobilenet_v3_large IMAGENET1K_V1 mobilenet_v3_large-8738ca79.pth classify 256 224 bilinear imagenet acc@1=74.042 -
mobilenet_v3_large IMAGENET1K_V2 mobilenet_v3_large-5c1a4163.pth classify 232 224 bilinear imagenet acc@1=75.274 - default
mobilenet_v3_small IMAGENET1K_V1 mobilenet_v3_small-047dcff4.pth classify 256 224 bilinear imagenet acc@1=67.668 - default
resnet101 IMAGENET1K_V1 resnet101-63fe2227.pth classify 256 224 bilinear imagenet acc@1=77.374 -
resnet101 IMAGENET1K_V2 resnet101-cd907fc2.pth classify 232 224 bilinear imagenet acc@1=81.886 - default
resnet152 IMAGENET1K_V1 resnet152-394f9c45.pth classify 256 224 bilinear imagenet acc@1=78.312 -
resnet152 IMAGENET1K_V2 resnet152-f82ba261.pth classify 232 224 bilinear imagenet acc@1=82.284 - default
resnet18 IMAGENET1K_V1 resnet18-f37072fd.pth classify 256 224 bilinear imagenet acc@1=69.758 - default
resnet34 IMAGENET1K_V1 resnet34-b627a593.pth classify 256 224 bilinear imagenet acc@1=73.314 - default
resnet50 IMAGENET1K_V1 resnet50-0676ba61.pth classify 256 224 bilinear imagenet acc@1=76.13 -
resnet50 IMAGENET1K_V2 resnet50-11ad3fa6.pth classify 232 224 bilinear imagenet acc@1=80.858 - default
resnext101_32x8d IMAGENET1K_V1 resnext101_32x8d-8ba56ff5.pth classify 256 224 bilinear imagenet acc@1=79.312 -
resnext101_32x8d IMAGENET1K_V2 resnext101_32x8d-110c445d.pth classify 232 224 bilinear imagenet acc@1=82.834 - default
resnext101_64x4d IMAGENET1K_V1 resnext101_64x4d-173b62eb.pth classify 232 224 bilinear imagenet acc@1=83.246 - default
resnext50_32x4d IMAGENET1K_V1 resnext50_32x4d-7cdf4587.pth classify 256 224 bilinear imagenet acc@1=77.618 -
resnext50_32x4d IMAGENET1K_V2 resnext50_32x4d-1a0047aa.pth classify 232 224 bilinear imagenet acc@1=81.198 - default
swin_b IMAGENET1K_V1 swin_b-68c6b09e.pth classify 238 224 bicubic imagenet acc@1=83.582 - default
swin_s IMAGENET1K_V1 swin_s-5e29d889.pth classify 246 224 bicubic imagenet acc@1=83.196 - default
swin_t IMAGENET1K_V1 swin_t-704ceda3.pth classify 232 224 bicubic imagenet acc@1=81.474 - default
vgg11 IMAGENET1K_V1 vgg11-8a719046.pth classify 256 224 bilinear imagenet acc@1=69.02 - default
vgg11_bn IMAGENET1K_V1 vgg11_bn-6002323d.pth classify 256 224 bilinear imagenet acc@1=70.37 - default
vgg13 IMAGENET1K_V1 vgg13-19584684.pth classify 256 224 bilinear imagenet acc@1=69.928 - default
vgg13_bn IMAGENET1K_V1 vgg13_bn-abd245e5.pth classify 256 224 bilinear imagenet acc@1=71.586 - default
vgg16 IMAGENET1K_V1 vgg16-397923af.pth classify 256 224 bilinear imagenet acc@1=71.592 - default
vgg16_bn IMAGENET1K_V1 vgg16_bn-6c64b313.pth classify 256 224 bilinear imagenet acc@1=73.36 - default
vgg19 IMAGENET1K_V1 vgg19-dcbb9e9d.pth classify 256 224 bilinear imagenet acc@1=72.376 - default
vgg19_bn IMAGENET1K_V1 vgg19_bn-c79401a0.pth classify 256 224 bilinear imagenet acc@1=74.218 - default
vit_b_16 IMAGENET1K_V1 vit_b_16-c867db91.pth classify 256 224 bilinear imagenet acc@1=81.072 - default
vit_b_16 IMAGENET1K_SWAG_E2E_V1 vit_b_16_swag-9ac1b537.pth classify 384 384 bicubic imagenet acc@1=85.304 CC-BY-NC-4.0
vit_b_16 IMAGENET1K_SWAG_LINEAR_V1 vit_b_16_lc_swag-4e70ced5.pth classify 224 224 bicubic imagenet acc@1=81.886 CC-BY-NC-4.0
vit_b_32 IMAGENET1K_V1 vit_b_32-d86f8d99.pth classify 256 224 bilinear imagenet acc@1=75.912 - default
vit_h_14 IMAGENET1K_SWAG_E2E_V1 vit_h_14_swag-80465313.pth classify 518 518 bicubic imagenet acc@1=88.552 CC-BY-NC-4.0 default
vit_h_14 IMAGENET1K_SWAG_LINEAR_V1 vit_h_14_lc_swag-c1eb923e.pth classify 224 224 bicubic imagenet acc@1=85.708 CC-BY-NC-4.0
vit_l_16 IMAGENET1K_V1 vit_l_16-852ce7e3.pth classify 242 224 bilinear imagenet acc@1=79.662 - default
vit_l_16 IMAGENET1K_SWAG_E2E_V1 vit_l_16_swag-4f3808c9.pth classify 512 512 bicubic imagenet acc@1=88.064 CC-BY-NC-4.0
vit_l_16 IMAGENET1K_SWAG_LINEAR_V1 vit_l_16_lc_swag-4d563306.pth classify 224 224 bicubic imagenet acc@1=85.146 CC-BY-NC-4.0
vit_l_32 IMAGENET1K_V1 vit_l_32-c7638314.pth classify 256 224 bilinear imagenet acc@1=76.972 - default
wide_resnet101_2 IMAGENET1K_V1 wide_resnet101_2-32ee1156.pth classify 256 224 bilinear imagenet acc@1=78.848 -
wide_resnet101_2 IMAGENET1K_V2 wide_resnet101_2-d733dc28.pth classify 232 224 bilinear imagenet acc@1=82.51 - default
wide_resnet50_2 IMAGENET1K_V1 wide_resnet50_2-95faca4d.pth classify 256 224 bilinear imagenet acc@1=78.468 -
wide_resnet50_2 IMAGENET1K_V2 wide_resnet50_2-9ba9bcbe.pth classify 232 224 bilinear imagenet acc@1=81.602 - default
"""
