"""The names that families make, by module. Written by `python -m tests.models.write_names`; a test compares."""

NAMES = {
    "text.bert": """
        BertConfig BertForCausalLM BertForMaskedLM BertForNextSentencePrediction BertForPreTraining BertForPreTrainingOutput
        BertForQuestionAnswering BertForSequenceClassification BertForTokenClassification BertModel Task TextActivation
        bert_base bert_base_cls bert_base_mlm bert_base_qa bert_base_token_cls bert_large bert_large_cls bert_large_mlm
        bert_large_qa bert_large_token_cls bert_medium bert_medium_cls bert_medium_mlm bert_medium_qa bert_medium_token_cls
        bert_mini bert_mini_cls bert_mini_mlm bert_mini_qa bert_mini_token_cls bert_small bert_small_cls bert_small_mlm
        bert_small_qa bert_small_token_cls bert_tiny bert_tiny_cls bert_tiny_mlm bert_tiny_qa bert_tiny_token_cls
    """,
    "text.clip": """
        CLIPConfig CLIPModel CLIPOutput clip_vit_base_16 clip_vit_base_32 clip_vit_large_14
    """,
    "text.distilbert": """
        DistilBertConfig DistilBertForMaskedLM DistilBertForQuestionAnswering DistilBertForSequenceClassification
        DistilBertForTokenClassification DistilBertModel distilbert_base distilbert_base_cls distilbert_base_mlm
        distilbert_base_qa distilbert_base_token_cls
    """,
    "text.gpt": """
        GPTConfig GPTDoubleHeadsModel GPTDoubleHeadsOutput GPTForSequenceClassification GPTLMHeadModel GPTModel gpt gpt_cls
        gpt_lm
    """,
    "text.gpt2": """
        GPT2Config GPT2DoubleHeadsModel GPT2DoubleHeadsOutput GPT2ForSequenceClassification GPT2LMHeadModel GPT2Model
        gpt2_large gpt2_large_cls gpt2_large_lm gpt2_medium gpt2_medium_cls gpt2_medium_lm gpt2_small gpt2_small_cls
        gpt2_small_lm gpt2_xlarge gpt2_xlarge_cls gpt2_xlarge_lm
    """,
    "text.llama": """
        GemmaConfig GemmaForCausalLM GemmaModel LlamaConfig LlamaForCausalLM LlamaModel MistralConfig MistralForCausalLM
        MistralModel Qwen2Config Qwen2ForCausalLM Qwen2Model Qwen3Config Qwen3ForCausalLM Qwen3Model gemma_2b gemma_2b_lm
        llama_3_2_1b llama_3_2_1b_lm llama_3_8b llama_3_8b_lm mistral_7b mistral_7b_lm qwen2_0_5b qwen2_0_5b_lm qwen2_7b
        qwen2_7b_lm qwen3_0_6b qwen3_0_6b_lm smollm_135m smollm_135m_lm
    """,
    "text.roberta": """
        RobertaConfig RobertaForMaskedLM RobertaForQuestionAnswering RobertaForSequenceClassification
        RobertaForTokenClassification RobertaModel roberta_base roberta_base_cls roberta_base_mlm roberta_base_qa
        roberta_base_token_cls roberta_large roberta_large_cls roberta_large_mlm roberta_large_qa roberta_large_token_cls
    """,
    "text.roformer": """
        MultipleChoiceModelOutput RoFormerConfig RoFormerForMaskedLM RoFormerForMultipleChoice RoFormerForQuestionAnswering
        RoFormerForSequenceClassification RoFormerForTokenClassification RoFormerModel roformer roformer_cls roformer_mlm
        roformer_qa roformer_token_cls
    """,
    "text.t5": """
        Seq2SeqLMOutput T5Config T5EncoderModel T5ForConditionalGeneration flan_t5_base flan_t5_base_encoder flan_t5_large
        flan_t5_large_encoder flan_t5_small flan_t5_small_encoder flan_t5_xl flan_t5_xl_encoder t5_3b t5_3b_encoder t5_base
        t5_base_encoder t5_large t5_large_encoder t5_small t5_small_encoder
    """,
    "text.transformer": """
        TransformerConfig TransformerForSeq2SeqLM TransformerForSequenceClassification TransformerForTokenClassification
        TransformerModel transformer_base transformer_base_cls transformer_base_seq2seq transformer_base_token_cls
        transformer_large transformer_large_cls transformer_large_seq2seq transformer_large_token_cls
    """,
    "text.whisper": """
        WhisperConfig WhisperForConditionalGeneration whisper_base whisper_large whisper_large_v3 whisper_medium
        whisper_small whisper_tiny
    """,
    "vision.classification.coatnet": """
        CoAtNet CoAtNetConfig CoAtNetForImageClassification coatnet_0 coatnet_0_cls
    """,
    "vision.classification.convnext": """
        ConvNeXt ConvNeXtConfig ConvNeXtForImageClassification convnext_base convnext_base_cls convnext_large
        convnext_large_cls convnext_small convnext_small_cls convnext_tiny convnext_tiny_cls convnext_xlarge
        convnext_xlarge_cls
    """,
    "vision.classification.crossvit": """
        CrossViT CrossViTConfig CrossViTForImageClassification crossvit_15 crossvit_15_cls crossvit_18 crossvit_18_cls
        crossvit_9 crossvit_9_cls crossvit_base crossvit_base_cls crossvit_small crossvit_small_cls crossvit_tiny
        crossvit_tiny_cls
    """,
    "vision.classification.cvt": """
        CvT CvTConfig CvTForImageClassification cvt_13 cvt_13_cls cvt_21 cvt_21_cls cvt_w24 cvt_w24_cls
    """,
    "vision.classification.densenet": """
        DenseNet DenseNetConfig DenseNetForImageClassification densenet121 densenet161 densenet169 densenet201 densenet_121
        densenet_121_cls densenet_161 densenet_161_cls densenet_169 densenet_169_cls densenet_201 densenet_201_cls
        densenet_264 densenet_264_cls
    """,
    "vision.classification.dinov2": """
        Dinov2Config Dinov2ForImageClassification Dinov2Model dinov2_base dinov2_base_cls dinov2_giant dinov2_giant_cls
        dinov2_large dinov2_large_cls dinov2_small dinov2_small_cls
    """,
    "vision.classification.efficientformer": """
        EfficientFormer EfficientFormerConfig EfficientFormerForImageClassification efficientformer_l1
        efficientformer_l1_cls efficientformer_l3 efficientformer_l3_cls efficientformer_l7 efficientformer_l7_cls
    """,
    "vision.classification.efficientnet": """
        EfficientNet EfficientNetConfig EfficientNetForImageClassification efficientnet_b0 efficientnet_b0_cls
        efficientnet_b1 efficientnet_b1_cls efficientnet_b2 efficientnet_b2_cls efficientnet_b3 efficientnet_b3_cls
        efficientnet_b4 efficientnet_b4_cls efficientnet_b5 efficientnet_b5_cls efficientnet_b6 efficientnet_b6_cls
        efficientnet_b7 efficientnet_b7_cls efficientnet_v2_l efficientnet_v2_l_cls efficientnet_v2_m efficientnet_v2_m_cls
        efficientnet_v2_s efficientnet_v2_s_cls
    """,
    "vision.classification.inception": """
        GoogLeNet GoogLeNetConfig GoogLeNetForImageClassification GoogLeNetOutput InceptionConfig InceptionV3
        InceptionV3ForImageClassification InceptionV3Output googlenet googlenet_cls inception_v3 inception_v3_cls
    """,
    "vision.classification.inception_next": """
        InceptionNeXt InceptionNeXtConfig InceptionNeXtForImageClassification inception_next_base inception_next_base_cls
        inception_next_small inception_next_small_cls inception_next_tiny inception_next_tiny_cls
    """,
    "vision.classification.inception_resnet": """
        InceptionResNetConfig InceptionResNetOutput InceptionResNetV2 InceptionResNetV2ForImageClassification
        inception_resnet_v2 inception_resnet_v2_cls
    """,
    "vision.classification.lenet": """
        LeNetConfig LeNetForImageClassification
    """,
    "vision.classification.maxvit": """
        MaxViT MaxViTConfig MaxViTForImageClassification maxvit_base maxvit_base_cls maxvit_large maxvit_large_cls
        maxvit_small maxvit_small_cls maxvit_tiny maxvit_tiny_cls maxvit_xlarge maxvit_xlarge_cls
    """,
    "vision.classification.mobilenet": """
        MobileNetV2 MobileNetV2Config MobileNetV2ForImageClassification MobileNetV3 MobileNetV3Config
        MobileNetV3ForImageClassification mobilenet_v2 mobilenet_v2_075 mobilenet_v2_075_cls mobilenet_v2_cls
        mobilenet_v3_large mobilenet_v3_large_cls mobilenet_v3_small mobilenet_v3_small_cls
    """,
    "vision.classification.mobilenet_timm": """
        MobileNetV1 MobileNetV1Config MobileNetV1ForImageClassification MobileNetV4 MobileNetV4Config
        MobileNetV4ForImageClassification mobilenet_v1 mobilenet_v1_025 mobilenet_v1_025_cls mobilenet_v1_050
        mobilenet_v1_050_cls mobilenet_v1_075 mobilenet_v1_075_cls mobilenet_v1_cls mobilenet_v4_conv_large
        mobilenet_v4_conv_large_cls mobilenet_v4_conv_medium mobilenet_v4_conv_medium_cls mobilenet_v4_conv_small
        mobilenet_v4_conv_small_cls
    """,
    "vision.classification.pvt": """
        PVT PVTConfig PVTForImageClassification PVTV1 PVTV1Config PVTV1ForImageClassification pvt_tiny pvt_tiny_cls
        pvt_v2_b0 pvt_v2_b0_cls pvt_v2_b1 pvt_v2_b1_cls pvt_v2_b2 pvt_v2_b2_cls pvt_v2_b3 pvt_v2_b3_cls pvt_v2_b4
        pvt_v2_b4_cls pvt_v2_b5 pvt_v2_b5_cls
    """,
    "vision.classification.resnet": """
        ResNeXt ResNeXtConfig ResNeXtForImageClassification ResNet ResNetConfig ResNetForImageClassification SENet
        SENetConfig SENetForImageClassification resnet101 resnet152 resnet18 resnet34 resnet50 resnet_101 resnet_101_cls
        resnet_152 resnet_152_cls resnet_18 resnet_18_cls resnet_200 resnet_200_cls resnet_269 resnet_269_cls resnet_34
        resnet_34_cls resnet_50 resnet_50_cls resnext101_32x8d resnext101_64x4d resnext50_32x4d resnext_101_32x4d
        resnext_101_32x4d_cls resnext_101_32x8d resnext_101_32x8d_cls resnext_101_64x4d resnext_101_64x4d_cls
        resnext_50_32x4d resnext_50_32x4d_cls se_resnet_101 se_resnet_101_cls se_resnet_152 se_resnet_152_cls se_resnet_18
        se_resnet_18_cls se_resnet_34 se_resnet_34_cls se_resnet_50 se_resnet_50_cls wide_resnet101_2 wide_resnet50_2
        wide_resnet_101 wide_resnet_101_cls wide_resnet_50 wide_resnet_50_cls
    """,
    "vision.classification.resnet_kin": """
        CSPNet CSPNetConfig CSPNetForImageClassification ResNeSt ResNeStConfig ResNeStForImageClassification SKNet
        SKNetConfig SKNetForImageClassification cspresnet_50 cspresnet_50_cls resnest_101 resnest_101_cls resnest_14
        resnest_14_cls resnest_200 resnest_200_cls resnest_26 resnest_269 resnest_269_cls resnest_26_cls resnest_50
        resnest_50_cls sk_resnet_101 sk_resnet_101_cls sk_resnet_18 sk_resnet_18_cls sk_resnet_34 sk_resnet_34_cls
        sk_resnet_50 sk_resnet_50_cls sk_resnext_50_32x4d sk_resnext_50_32x4d_cls
    """,
    "vision.classification.swin": """
        SwinConfig SwinTransformer SwinTransformerForImageClassification swin_b swin_base swin_base_cls swin_large
        swin_large_cls swin_s swin_small swin_small_cls swin_t swin_tiny swin_tiny_cls
    """,
    "vision.classification.vgg": """
        AlexNet AlexNetConfig AlexNetForImageClassification VGG VGGConfig VGGForImageClassification ZFNet ZFNetConfig
        ZFNetForImageClassification alexnet alexnet_cls vgg11 vgg11_bn vgg13 vgg13_bn vgg16 vgg16_bn vgg19 vgg19_bn vgg_11
        vgg_11_bn vgg_11_bn_cls vgg_11_cls vgg_13 vgg_13_bn vgg_13_bn_cls vgg_13_cls vgg_16 vgg_16_bn vgg_16_bn_cls
        vgg_16_cls vgg_19 vgg_19_bn vgg_19_bn_cls vgg_19_cls zfnet zfnet_cls
    """,
    "vision.classification.vit": """
        DeiT DeiTConfig DeiTForImageClassification ViT ViTConfig ViTForImageClassification deit_base_16 deit_base_16_cls
        deit_base_distilled_16 deit_base_distilled_16_cls deit_small_16 deit_small_16_cls deit_small_distilled_16
        deit_small_distilled_16_cls deit_tiny_16 deit_tiny_16_cls deit_tiny_distilled_16 deit_tiny_distilled_16_cls vit_b_16
        vit_b_32 vit_base_16 vit_base_16_cls vit_base_32 vit_base_32_cls vit_h_14 vit_huge_14 vit_huge_14_cls vit_l_16
        vit_l_32 vit_large_16 vit_large_16_cls vit_large_32 vit_large_32_cls
    """,
    "vision.classification.xception": """
        Xception XceptionConfig XceptionForImageClassification XceptionOutput xception xception_cls
    """,
    "vision.detection.detr": """
        DETRConfig DETRForObjectDetection ObjectDetectionOutput detr_resnet101 detr_resnet50
    """,
    "vision.detection.efficientdet": """
        EfficientDetConfig EfficientDetForObjectDetection efficientdet_config efficientdet_d0 efficientdet_d1
        efficientdet_d2 efficientdet_d3 efficientdet_d4 efficientdet_d5 efficientdet_d6 efficientdet_d7
    """,
    "vision.detection.fast_rcnn": """
        FastRCNNConfig FastRCNNForObjectDetection RCNNConfig RCNNForObjectDetection fast_rcnn rcnn
    """,
    "vision.detection.rcnn": """
        FasterRCNNConfig FasterRCNNForObjectDetection MaskRCNNConfig MaskRCNNForObjectDetection faster_rcnn
        faster_rcnn_resnet50_fpn fasterrcnn_resnet50_fpn mask_rcnn mask_rcnn_resnet50_fpn maskrcnn_resnet50_fpn
    """,
    "vision.detection.yolo": """
        YOLOV1Config YOLOV1ForObjectDetection YOLOV2Config YOLOV2ForObjectDetection YOLOV3Config YOLOV3ForObjectDetection
        YOLOV4Config YOLOV4ForObjectDetection yolo_v1 yolo_v1_tiny yolo_v2 yolo_v2_tiny yolo_v3 yolo_v3_tiny yolo_v4
    """,
    "vision.generative.autoencoder": """
        AutoencoderKL AutoencoderKLConfig VAEConfig VAEForImageGeneration VAEModel VAEOutput autoencoder_kl vae vae_gen
    """,
    "vision.generative.configs": """
        BetaSchedule DiffusionModelConfig GenerativeActivation GenerativeModelConfig
    """,
    "vision.generative.ddpm": """
        DDPMConfig DDPMForImageGeneration DDPMModel DDPMUNet DiffusionModelOutput NCSNConfig NCSNForImageGeneration
        NCSNModel ddpm_cifar ddpm_cifar_gen ddpm_imagenet64 ddpm_imagenet64_gen ddpm_lsun ddpm_lsun_gen ncsn_celeba
        ncsn_celeba_gen ncsn_cifar ncsn_cifar_gen
    """,
    "vision.generative.hvae": """
        HVAEConfig HVAEForImageGeneration HVAEModel HVAEOutput hvae hvae_gen
    """,
    "vision.generative.schedulers": """
        DDIMScheduler DDPMScheduler DiffusionScheduler SchedulerOutput
    """,
    "vision.segmentation.base": """
        SemanticSegmentationOutput
    """,
    "vision.segmentation.fcn": """
        FCNConfig FCNForSemanticSegmentation deeplab_v3_mobilenet_v3_large deeplab_v3_resnet101 deeplab_v3_resnet50
        deeplabv3_mobilenet_v3_large deeplabv3_resnet101 deeplabv3_resnet50 fcn_resnet101 fcn_resnet50
    """,
    "vision.segmentation.mask2former": """
        Mask2FormerConfig Mask2FormerForSemanticSegmentation mask2former_resnet101 mask2former_resnet50
        mask2former_swin_base mask2former_swin_large mask2former_swin_small mask2former_swin_tiny
    """,
    "vision.segmentation.maskformer": """
        MaskFormerConfig MaskFormerForSemanticSegmentation maskformer_resnet101 maskformer_resnet50
    """,
    "vision.segmentation.queries": """
        InstanceSegmentationOutput QuerySegmentation
    """,
    "vision.segmentation.segformer": """
        SegformerConfig SegformerForSemanticSegmentation segformer_b0 segformer_b1 segformer_b2 segformer_b3 segformer_b4
        segformer_b5
    """,
    "vision.segmentation.unet": """
        AttentionUNetConfig AttentionUNetForSemanticSegmentation UNetConfig UNetForSemanticSegmentation attention_unet
        res_unet_2d res_unet_3d unet unet_3d
    """,
}
