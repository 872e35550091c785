"""Declared names: `nn`, `ao`, `quantization`, `nested`. The package's docstring explains the lines."""

TABLE = """
ao
ao.nn
ao.nn.quantized quantization
  from _declared.quantization: FloatFunctional
  class Linear Conv2d
ao.nn.quantized.dynamic quantization
  class Linear LSTM
ao.nn.qat quantization
  class Linear Conv2d
ao.nn.intrinsic quantization
  class ConvReLU2d ConvBn2d LinearReLU
nn.modules PyTorch's gradient of it is not the derivative of its values; nn.LocalResponseNorm
  class CrossMapLRN2d
ao.quantization quantization
  from _declared.quantization: QuantStub DeQuantStub
  class QConfig QConfigMapping FakeQuantize FakeQuantizeBase ObserverBase MinMaxObserver MovingAverageMinMaxObserver
      HistogramObserver QuantWrapper PlaceholderObserver PerChannelMinMaxObserver
  call convert prepare prepare_qat quantize quantize_dynamic fuse_modules fuse_modules_qat get_default_qconfig
      get_default_qat_qconfig get_default_qconfig_mapping default_observer default_weight_observer
      default_per_channel_weight_observer default_qconfig add_quant_dequant propagate_qconfig_ disable_observer
      enable_observer disable_fake_quant enable_fake_quant
ao.quantization.qconfig quantization
  class QConfig
ao.quantization.observer quantization
  class ObserverBase MinMaxObserver PlaceholderObserver
ao.quantization.fake_quantize quantization
  class FakeQuantize FakeQuantizeBase
ao.quantization.quantize_fx quantization
  call prepare_fx convert_fx prepare_qat_fx fuse_fx
ao.quantization.fx
ao.quantization.fx._decomposed
ao.pruning pruning by tools; lucid.nn.utils.prune has masks
  class WeightNormSparsifier BaseSparsifier
quantization quantization
  from _declared.quantization: QuantStub DeQuantStub
  class QConfig FakeQuantize FakeQuantizeBase ObserverBase QuantWrapper MinMaxObserver
  call convert prepare prepare_qat quantize quantize_dynamic fuse_modules get_default_qconfig get_default_qat_qconfig
      default_qconfig
quantization.quantize_fx quantization
  call prepare_fx convert_fx
nn.quantized quantization
  from _declared.quantization: FloatFunctional QFunctional=FloatFunctional
  class Linear Conv2d
nn.quantized.dynamic quantization
  class Linear LSTM
nn.qat quantization
  class Linear Conv2d
nn.intrinsic quantization
  class ConvReLU2d ConvBn2d LinearReLU
nn.quantizable quantization
  class LSTM MultiheadAttention
nested tensors of ragged rows
  call nested_tensor as_nested_tensor to_padded_tensor nested_tensor_from_jagged narrow masked_select
nested._internal
nested._internal.nested_tensor tensors of ragged rows
  class NestedTensor
  call nested_view_from_values_offsets jagged_from_list
nn.modules._functions
nn.attention._utils
nn.attention.experimental
nn.parallel.comm
  from cuda.comm: broadcast broadcast_coalesced scatter gather reduce_add reduce_add_coalesced
nn.parallel._functions
nn.backends
nn.cpp
nn._reduction
  from _declared.shapes: get_enum=reduction_enum legacy_get_string=reduction_string
"""
