#dram = #ttnn.buffer_type<dram>
#l1 = #ttnn.buffer_type<l1>
#system_memory = #ttnn.buffer_type<system_memory>
#ttnn_layout = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 32 + d1 * 32 + d2, d3), <1x1>, memref<1x1x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout1 = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 841 + d1 * 29 + d2, d3), <1x1>, memref<1682x3xf32, #dram>, <interleaved>>
#ttnn_layout2 = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 9 + d1 * 3 + d2, d3), <1x1>, memref<27x8xf32, #dram>, <interleaved>>
#ttnn_layout3 = #ttnn.ttnn_layout<(d0) -> (0, d0), <1x1>, memref<1x8xf32, #dram>, <interleaved>>
#ttnn_layout4 = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 3 + d1 + d2, d3), <1x1>, memref<9x8xf32, #dram>, <interleaved>>
#ttnn_layout5 = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 24 + d1 * 8 + d2, d3), <1x1>, memref<72x12xf32, #dram>, <interleaved>>
#ttnn_layout6 = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 192 + d1 * 32 + d2, d3), <1x1>, memref<12x1x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout7 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<1x1x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout8 = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 224 + d1 * 32 + d2, d3), <1x1>, memref<14x1x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout9 = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 96 + d1 * 32 + d2, d3), <1x1>, memref<9x1x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout10 = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 96 + d1 * 32 + d2, d3), <10x11>, memref<1x1x!ttcore.tile<32x32, f32>, #l1>, <interleaved>>
#ttnn_layout11 = #ttnn.ttnn_layout<(d0) -> (0, d0), <1x1>, memref<1x1x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout12 = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 928 + d1 * 32 + d2, d3), <1x1>, memref<58x1x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout13 = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 1696 + d1 * 1696 + d2, d3), <10x11>, memref<1x1x!ttcore.tile<32x32, f32>, #l1>, <interleaved>>
#ttnn_layout14 = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 9 + d1 * 3 + d2, d3), <10x11>, memref<1x2xf32, #l1>, <interleaved>>
#ttnn_layout15 = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 9 + d1 * 3 + d2, d3), <1x1>, memref<72x3xf32, #system_memory>>
#ttnn_layout16 = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 + d1 + d2, d3), <1x1>, memref<1x8xf32, #dram>, <interleaved>>
#ttnn_layout17 = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 + d1 + d2, d3), <1x1>, memref<1x8xf32, #system_memory>>
#ttnn_layout18 = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 480 + d1 * 480 + d2, d3), <15x1>, memref<1x1x!ttcore.tile<32x32, f32>, #l1>, <height_sharded>, core_ranges = <[#ttnn.core_range<(0,0), (10,0)>, #ttnn.core_range<(0,1), (3,1)>]>>
#ttnn_layout19 = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 32 + d1 * 32 + d2, d3), <10x11>, memref<1x1x!ttcore.tile<32x32, f32>, #l1>, <interleaved>>
#ttnn_layout20 = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 3 + d1 * 3 + d2, d3), <10x11>, memref<1x1xf32, #l1>, <interleaved>>
#ttnn_layout21 = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 3 + d1 * 3 + d2, d3), <1x1>, memref<24x3xf32, #system_memory>>
#ttnn_layout22 = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 96 + d1 * 96 + d2, d3), <1x1>, memref<3x1x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout23 = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 352 + d1 * 352 + d2, d3), <11x1>, memref<1x1x!ttcore.tile<32x32, f32>, #l1>, <height_sharded>, core_ranges = <[#ttnn.core_range<(0,0), (10,0)>]>>
#ttnn_layout24 = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 256 + d1 * 32 + d2, d3), <10x11>, memref<1x1x!ttcore.tile<32x32, f32>, #l1>, <interleaved>>
#ttnn_layout25 = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 24 + d1 * 3 + d2, d3), <10x11>, memref<1x8xf32, #l1>, <interleaved>>
#ttnn_layout26 = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 24 + d1 * 3 + d2, d3), <1x1>, memref<288x3xf32, #system_memory>>
#ttnn_layout27 = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 72 + d1 * 72 + d2, d3), <11x1>, memref<7x12xf32, #l1>, <height_sharded>, core_ranges = <[#ttnn.core_range<(0,0), (10,0)>]>>
#ttnn_layout28 = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 72 + d1 * 72 + d2, d3), <1x1>, memref<72x12xf32, #dram>, <interleaved>>
#ttnn_layout29 = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 192 + d1 * 32 + d2, d3), <10x11>, memref<1x1x!ttcore.tile<32x32, f32>, #l1>, <interleaved>>
#ttnn_layout30 = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 192 + d1 * 192 + d2, d3), <10x11>, memref<1x1x!ttcore.tile<32x32, f32>, #l1>, <interleaved>>
#ttnn_layout31 = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 32 + d1 * 32 + d2, d3), <2x1>, memref<1x1x!ttcore.tile<32x32, f32>, #l1>, <block_sharded>, core_ranges = <[#ttnn.core_range<(0,0), (0,1)>]>>
#ttnn_layout32 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <10x11>, memref<1x1x!ttcore.tile<32x32, f32>, #l1>, <interleaved>>
#ttnn_layout33 = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 352 + d1 * 352 + d2, d3), <11x1>, memref<1x1x!ttcore.tile<32x32, bf16>, #l1>, <height_sharded>, core_ranges = <[#ttnn.core_range<(0,0), (10,0)>]>>
#ttnn_layout34 = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 352 + d1 * 352 + d2, d3), <1x1>, memref<11x1x!ttcore.tile<32x32, bf16>, #dram>, <interleaved>>
#ttnn_layout35 = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 98 + d1 * 98 + d2, d3), <1x1>, memref<98x12xbf16, #dram>, <interleaved>>
#ttnn_layout36 = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 128 + d1 * 128 + d2, d3), <1x1>, memref<4x1x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout37 = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 224 + d1 * 32 + d2, d3), <10x11>, memref<1x1x!ttcore.tile<32x32, f32>, #l1>, <interleaved>>
module @jit_convnet attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32, ttcore.meshes = #ttcore.meshes<[<"mesh" = 1x1>]>} {
  ttcore.device_module {
    builtin.module @jit_convnet attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32, ttcore.meshes = #ttcore.meshes<[<"mesh" = 1x1>]>, ttcore.system_desc = #system_desc, ttnn.l1_const_eval_usage = 1024 : ui64} {
      func.func private @main_const_eval_0() -> tensor<1x1x1x1xf32, #ttnn_layout> attributes {tt.function_type = "const_eval"} {
        %0 = "ttnn.get_device"() <{mesh_offset = #ttnn<mesh_offset 0x0>, mesh_shape = #ttnn<mesh_shape 1x1>}> : () -> !ttnn.device
        %1 = "ttnn.full"(%0) <{fill_value = 4.000000e+00 : f32, shape = #ttnn.shape<1x1x1x1>}> : (!ttnn.device) -> tensor<1x1x1x1xf32, #ttnn_layout>
        return %1 : tensor<1x1x1x1xf32, #ttnn_layout>
      }
      func.func public @main(%arg0: tensor<2x29x29x3xf32, #ttnn_layout1> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<2x29x29x3xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, %arg1: tensor<3x3x3x8xf32, #ttnn_layout2> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<3x3x3x8xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, %arg2: tensor<8xf32, #ttnn_layout3> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<8xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, %arg3: tensor<3x3x1x8xf32, #ttnn_layout4> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<3x3x1x8xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, %arg4: tensor<3x3x8x12xf32, #ttnn_layout5> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<3x3x8x12xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}) -> (tensor<2x6x6x12xf32, #ttnn_layout6> {jax.result_info = "result[0]", ttcore.local_shape = #ttcore<local_shape local_shape = tensor<2x6x6x12xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, tensor<2x12xf32, #ttnn_layout7> {jax.result_info = "result[1]", ttcore.local_shape = #ttcore<local_shape local_shape = tensor<2x12xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, tensor<2x7x7x12xf32, #ttnn_layout8> {jax.result_info = "result[2]", ttcore.local_shape = #ttcore<local_shape local_shape = tensor<2x7x7x12xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}) attributes {tt.function_type = "forward_device"} {
        %0 = ttcore.load_cached(@main_const_eval_0, []) : () -> tensor<1x1x1x1xf32, #ttnn_layout>
        %1 = "ttnn.get_device"() <{mesh_offset = #ttnn<mesh_offset 0x0>, mesh_shape = #ttnn<mesh_shape 1x1>}> : () -> !ttnn.device
        %2 = "ttnn.to_layout"(%arg1) : (tensor<3x3x3x8xf32, #ttnn_layout2>) -> tensor<3x3x3x8xf32, #ttnn_layout9>
        "ttnn.deallocate"(%arg1) <{force = false}> : (tensor<3x3x3x8xf32, #ttnn_layout2>) -> ()
        %3 = "ttnn.permute"(%2) <{permutation = array<i64: 3, 2, 0, 1>}> : (tensor<3x3x3x8xf32, #ttnn_layout9>) -> tensor<8x3x3x3xf32, #ttnn_layout10>
        "ttnn.deallocate"(%2) <{force = false}> : (tensor<3x3x3x8xf32, #ttnn_layout9>) -> ()
        %4 = "ttnn.to_layout"(%arg2) : (tensor<8xf32, #ttnn_layout3>) -> tensor<8xf32, #ttnn_layout11>
        "ttnn.deallocate"(%arg2) <{force = false}> : (tensor<8xf32, #ttnn_layout3>) -> ()
        %5 = "ttnn.reshape"(%4) <{shape = [1 : i32, 1 : i32, 1 : i32, 8 : i32]}> : (tensor<8xf32, #ttnn_layout11>) -> tensor<1x1x1x8xf32, #ttnn_layout>
        "ttnn.deallocate"(%4) <{force = false}> : (tensor<8xf32, #ttnn_layout11>) -> ()
        %6 = "ttnn.to_layout"(%arg0) : (tensor<2x29x29x3xf32, #ttnn_layout1>) -> tensor<2x29x29x3xf32, #ttnn_layout12>
        "ttnn.deallocate"(%arg0) <{force = false}> : (tensor<2x29x29x3xf32, #ttnn_layout1>) -> ()
        %7 = "ttnn.reshape"(%6) <{shape = [1 : i32, 1 : i32, 1682 : i32, 3 : i32]}> : (tensor<2x29x29x3xf32, #ttnn_layout12>) -> tensor<1x1x1682x3xf32, #ttnn_layout13>
        "ttnn.deallocate"(%6) <{force = false}> : (tensor<2x29x29x3xf32, #ttnn_layout12>) -> ()
        %8 = "ttnn.to_layout"(%3) : (tensor<8x3x3x3xf32, #ttnn_layout10>) -> tensor<8x3x3x3xf32, #ttnn_layout14>
        "ttnn.deallocate"(%3) <{force = false}> : (tensor<8x3x3x3xf32, #ttnn_layout10>) -> ()
        %9 = "ttnn.from_device"(%8) : (tensor<8x3x3x3xf32, #ttnn_layout14>) -> tensor<8x3x3x3xf32, #ttnn_layout15>
        "ttnn.deallocate"(%8) <{force = false}> : (tensor<8x3x3x3xf32, #ttnn_layout14>) -> ()
        %10 = "ttnn.to_layout"(%5) : (tensor<1x1x1x8xf32, #ttnn_layout>) -> tensor<1x1x1x8xf32, #ttnn_layout16>
        "ttnn.deallocate"(%5) <{force = false}> : (tensor<1x1x1x8xf32, #ttnn_layout>) -> ()
        %11 = "ttnn.from_device"(%10) : (tensor<1x1x1x8xf32, #ttnn_layout16>) -> tensor<1x1x1x8xf32, #ttnn_layout17>
        "ttnn.deallocate"(%10) <{force = false}> : (tensor<1x1x1x8xf32, #ttnn_layout16>) -> ()
        %12 = "ttnn.prepare_conv2d_weights"(%9, %1) <{batch_size = 2 : i32, conv2d_config = #ttnn.conv2d_config<weights_dtype = f32, activation = <op_type = relu>, deallocate_activation = true, act_block_h_override = 0, shard_layout = height_sharded, enable_kernel_stride_folding = false, config_tensors_in_dram = true>, conv2d_slice_config = #ttnn.conv2d_slice_config<l1_full, 0>, dilation = array<i32: 1, 1>, groups = 1 : i32, has_bias = true, in_channels = 3 : i32, input_dtype = #ttcore.supportedDataTypes<f32>, input_height = 29 : i32, input_memory_config = #ttnn.memory_config<#l1, <interleaved>>, input_tensor_layout = #ttnn.layout<tile>, input_width = 29 : i32, kernel_size = array<i32: 3, 3>, out_channels = 8 : i32, output_dtype = #ttcore.supportedDataTypes<f32>, padding = array<i32: 1, 1, 1, 1>, stride = array<i32: 2, 2>, weights_format = "OIHW"}> : (tensor<8x3x3x3xf32, #ttnn_layout15>, !ttnn.device) -> tensor<1x1x27x8xf32, #ttnn_layout>
        "ttnn.deallocate"(%9) <{force = false}> : (tensor<8x3x3x3xf32, #ttnn_layout15>) -> ()
        %13 = "ttnn.prepare_conv2d_bias"(%11, %1) <{batch_size = 2 : i32, conv2d_config = #ttnn.conv2d_config<weights_dtype = f32, activation = <op_type = relu>, deallocate_activation = true, act_block_h_override = 0, shard_layout = height_sharded, enable_kernel_stride_folding = false, config_tensors_in_dram = true>, conv2d_slice_config = #ttnn.conv2d_slice_config<l1_full, 0>, dilation = array<i32: 1, 1>, groups = 1 : i32, in_channels = 3 : i32, input_dtype = #ttcore.supportedDataTypes<f32>, input_height = 29 : i32, input_memory_config = #ttnn.memory_config<#l1, <interleaved>>, input_tensor_layout = #ttnn.layout<tile>, input_width = 29 : i32, kernel_size = array<i32: 3, 3>, out_channels = 8 : i32, output_dtype = #ttcore.supportedDataTypes<f32>, padding = array<i32: 1, 1, 1, 1>, stride = array<i32: 2, 2>}> : (tensor<1x1x1x8xf32, #ttnn_layout17>, !ttnn.device) -> tensor<1x1x1x8xf32, #ttnn_layout>
        "ttnn.deallocate"(%11) <{force = false}> : (tensor<1x1x1x8xf32, #ttnn_layout17>) -> ()
        %14 = "ttnn.conv2d"(%7, %12, %13, %1) <{batch_size = 2 : i32, conv2d_config = #ttnn.conv2d_config<weights_dtype = f32, activation = <op_type = relu>, deallocate_activation = true, act_block_h_override = 0, shard_layout = height_sharded, enable_kernel_stride_folding = false, config_tensors_in_dram = true>, conv2d_slice_config = #ttnn.conv2d_slice_config<l1_full, 0>, dilation = array<i32: 1, 1>, groups = 1 : i32, in_channels = 3 : i32, input_height = 29 : i32, input_width = 29 : i32, kernel_size = array<i32: 3, 3>, out_channels = 8 : i32, padding = array<i32: 1, 1, 1, 1>, stride = array<i32: 2, 2>}> : (tensor<1x1x1682x3xf32, #ttnn_layout13>, tensor<1x1x27x8xf32, #ttnn_layout>, tensor<1x1x1x8xf32, #ttnn_layout>, !ttnn.device) -> tensor<1x1x450x8xf32, #ttnn_layout18>
        "ttnn.deallocate"(%13) <{force = false}> : (tensor<1x1x1x8xf32, #ttnn_layout>) -> ()
        "ttnn.deallocate"(%12) <{force = false}> : (tensor<1x1x27x8xf32, #ttnn_layout>) -> ()
        %15 = "ttnn.to_layout"(%arg3) : (tensor<3x3x1x8xf32, #ttnn_layout4>) -> tensor<3x3x1x8xf32, #ttnn_layout9>
        "ttnn.deallocate"(%arg3) <{force = false}> : (tensor<3x3x1x8xf32, #ttnn_layout4>) -> ()
        %16 = "ttnn.permute"(%15) <{permutation = array<i64: 3, 2, 0, 1>}> : (tensor<3x3x1x8xf32, #ttnn_layout9>) -> tensor<8x1x3x3xf32, #ttnn_layout19>
        "ttnn.deallocate"(%15) <{force = false}> : (tensor<3x3x1x8xf32, #ttnn_layout9>) -> ()
        %17 = "ttnn.to_layout"(%16) : (tensor<8x1x3x3xf32, #ttnn_layout19>) -> tensor<8x1x3x3xf32, #ttnn_layout20>
        "ttnn.deallocate"(%16) <{force = false}> : (tensor<8x1x3x3xf32, #ttnn_layout19>) -> ()
        %18 = "ttnn.from_device"(%17) : (tensor<8x1x3x3xf32, #ttnn_layout20>) -> tensor<8x1x3x3xf32, #ttnn_layout21>
        "ttnn.deallocate"(%17) <{force = false}> : (tensor<8x1x3x3xf32, #ttnn_layout20>) -> ()
        %19 = "ttnn.prepare_conv2d_weights"(%18, %1) <{batch_size = 2 : i32, conv2d_config = #ttnn.conv2d_config<weights_dtype = f32, deallocate_activation = true, act_block_h_override = 0, shard_layout = height_sharded, enable_kernel_stride_folding = false, config_tensors_in_dram = true>, conv2d_slice_config = #ttnn.conv2d_slice_config<l1_full, 0>, dilation = array<i32: 1, 1>, groups = 8 : i32, has_bias = false, in_channels = 8 : i32, input_dtype = #ttcore.supportedDataTypes<f32>, input_height = 15 : i32, input_memory_config = #ttnn.memory_config<#l1, <height_sharded>, #ttnn.shard_spec<<[#ttnn.core_range<(0,0), (10,0)>, #ttnn.core_range<(0,1), (3,1)>]>, <32x32>, <row_major>>>, input_tensor_layout = #ttnn.layout<tile>, input_width = 15 : i32, kernel_size = array<i32: 3, 3>, out_channels = 8 : i32, output_dtype = #ttcore.supportedDataTypes<f32>, padding = array<i32: 0, 0, 0, 0>, stride = array<i32: 1, 1>, weights_format = "OIHW"}> : (tensor<8x1x3x3xf32, #ttnn_layout21>, !ttnn.device) -> tensor<1x1x72x8xf32, #ttnn_layout22>
        "ttnn.deallocate"(%18) <{force = false}> : (tensor<8x1x3x3xf32, #ttnn_layout21>) -> ()
        %20 = "ttnn.conv2d"(%14, %19, %1) <{batch_size = 2 : i32, conv2d_config = #ttnn.conv2d_config<weights_dtype = f32, deallocate_activation = true, act_block_h_override = 0, shard_layout = height_sharded, enable_kernel_stride_folding = false, config_tensors_in_dram = true>, conv2d_slice_config = #ttnn.conv2d_slice_config<l1_full, 0>, dilation = array<i32: 1, 1>, groups = 8 : i32, in_channels = 8 : i32, input_height = 15 : i32, input_width = 15 : i32, kernel_size = array<i32: 3, 3>, out_channels = 8 : i32, padding = array<i32: 0, 0, 0, 0>, stride = array<i32: 1, 1>}> : (tensor<1x1x450x8xf32, #ttnn_layout18>, tensor<1x1x72x8xf32, #ttnn_layout22>, !ttnn.device) -> tensor<1x1x338x8xf32, #ttnn_layout23>
        "ttnn.deallocate"(%19) <{force = false}> : (tensor<1x1x72x8xf32, #ttnn_layout22>) -> ()
        %21 = "ttnn.to_layout"(%arg4) : (tensor<3x3x8x12xf32, #ttnn_layout5>) -> tensor<3x3x8x12xf32, #ttnn_layout9>
        "ttnn.deallocate"(%arg4) <{force = false}> : (tensor<3x3x8x12xf32, #ttnn_layout5>) -> ()
        %22 = "ttnn.permute"(%21) <{permutation = array<i64: 3, 2, 0, 1>}> : (tensor<3x3x8x12xf32, #ttnn_layout9>) -> tensor<12x8x3x3xf32, #ttnn_layout24>
        "ttnn.deallocate"(%21) <{force = false}> : (tensor<3x3x8x12xf32, #ttnn_layout9>) -> ()
        %23 = "ttnn.gelu"(%20) : (tensor<1x1x338x8xf32, #ttnn_layout23>) -> tensor<1x1x338x8xf32, #ttnn_layout23>
        "ttnn.deallocate"(%20) <{force = false}> : (tensor<1x1x338x8xf32, #ttnn_layout23>) -> ()
        %24 = "ttnn.to_layout"(%22) : (tensor<12x8x3x3xf32, #ttnn_layout24>) -> tensor<12x8x3x3xf32, #ttnn_layout25>
        "ttnn.deallocate"(%22) <{force = false}> : (tensor<12x8x3x3xf32, #ttnn_layout24>) -> ()
        %25 = "ttnn.from_device"(%24) : (tensor<12x8x3x3xf32, #ttnn_layout25>) -> tensor<12x8x3x3xf32, #ttnn_layout26>
        "ttnn.deallocate"(%24) <{force = false}> : (tensor<12x8x3x3xf32, #ttnn_layout25>) -> ()
        %26 = "ttnn.prepare_conv2d_weights"(%25, %1) <{batch_size = 2 : i32, conv2d_config = #ttnn.conv2d_config<weights_dtype = f32, deallocate_activation = true, act_block_h_override = 0, shard_layout = height_sharded, enable_kernel_stride_folding = false, config_tensors_in_dram = true>, conv2d_slice_config = #ttnn.conv2d_slice_config<l1_full, 0>, dilation = array<i32: 2, 2>, groups = 1 : i32, has_bias = false, in_channels = 8 : i32, input_dtype = #ttcore.supportedDataTypes<f32>, input_height = 13 : i32, input_memory_config = #ttnn.memory_config<#l1, <height_sharded>, #ttnn.shard_spec<<[#ttnn.core_range<(0,0), (10,0)>]>, <32x32>, <row_major>>>, input_tensor_layout = #ttnn.layout<tile>, input_width = 13 : i32, kernel_size = array<i32: 3, 3>, out_channels = 12 : i32, output_dtype = #ttcore.supportedDataTypes<f32>, padding = array<i32: 2, 2, 2, 2>, stride = array<i32: 1, 1>, weights_format = "OIHW"}> : (tensor<12x8x3x3xf32, #ttnn_layout26>, !ttnn.device) -> tensor<1x1x72x12xf32, #ttnn_layout22>
        "ttnn.deallocate"(%25) <{force = false}> : (tensor<12x8x3x3xf32, #ttnn_layout26>) -> ()
        %27 = "ttnn.conv2d"(%23, %26, %1) <{batch_size = 2 : i32, conv2d_config = #ttnn.conv2d_config<weights_dtype = f32, deallocate_activation = true, act_block_h_override = 0, shard_layout = height_sharded, enable_kernel_stride_folding = false, config_tensors_in_dram = true>, conv2d_slice_config = #ttnn.conv2d_slice_config<l1_full, 0>, dilation = array<i32: 2, 2>, groups = 1 : i32, in_channels = 8 : i32, input_height = 13 : i32, input_width = 13 : i32, kernel_size = array<i32: 3, 3>, out_channels = 12 : i32, padding = array<i32: 2, 2, 2, 2>, stride = array<i32: 1, 1>}> : (tensor<1x1x338x8xf32, #ttnn_layout23>, tensor<1x1x72x12xf32, #ttnn_layout22>, !ttnn.device) -> tensor<1x1x338x12xf32, #ttnn_layout23>
        "ttnn.deallocate"(%26) <{force = false}> : (tensor<1x1x72x12xf32, #ttnn_layout22>) -> ()
        %28 = "ttnn.avg_pool2d"(%27) <{batch_size = 2 : si32, ceil_mode = false, channels = 12 : si32, config_tensors_in_dram = true, count_include_pad = true, dilation = array<i32: 1, 1>, divisor_override = 1 : i32, input_height = 13 : si32, input_width = 13 : si32, kernel_size = array<i32: 2, 2>, padding = array<i32: 0, 0>, reallocate_halo_output = false, stride = array<i32: 2, 2>}> : (tensor<1x1x338x12xf32, #ttnn_layout23>) -> tensor<1x1x72x12xf32, #ttnn_layout27>
        %29 = "ttnn.to_memory_config"(%28) : (tensor<1x1x72x12xf32, #ttnn_layout27>) -> tensor<1x1x72x12xf32, #ttnn_layout28>
        "ttnn.deallocate"(%28) <{force = false}> : (tensor<1x1x72x12xf32, #ttnn_layout27>) -> ()
        %30 = "ttnn.divide"(%29, %0) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<1x1x72x12xf32, #ttnn_layout28>, tensor<1x1x1x1xf32, #ttnn_layout>) -> tensor<1x1x72x12xf32, #ttnn_layout22>
        "ttnn.deallocate"(%29) <{force = false}> : (tensor<1x1x72x12xf32, #ttnn_layout28>) -> ()
        "ttnn.deallocate"(%0) <{force = false}> : (tensor<1x1x1x1xf32, #ttnn_layout>) -> ()
        %31 = "ttnn.reshape"(%30) <{shape = [2 : i32, 6 : i32, 6 : i32, 12 : i32]}> : (tensor<1x1x72x12xf32, #ttnn_layout22>) -> tensor<2x6x6x12xf32, #ttnn_layout29>
        "ttnn.deallocate"(%30) <{force = false}> : (tensor<1x1x72x12xf32, #ttnn_layout22>) -> ()
        %32 = "ttnn.to_memory_config"(%31) : (tensor<2x6x6x12xf32, #ttnn_layout29>) -> tensor<2x6x6x12xf32, #ttnn_layout6>
        "ttnn.deallocate"(%31) <{force = false}> : (tensor<2x6x6x12xf32, #ttnn_layout29>) -> ()
        %33 = "ttnn.reshape"(%27) <{shape = [2 : i32, 1 : i32, 169 : i32, 12 : i32]}> : (tensor<1x1x338x12xf32, #ttnn_layout23>) -> tensor<2x1x169x12xf32, #ttnn_layout30>
        %34 = "ttnn.mean"(%33) <{dim_arg = [2 : i32], keep_dim = true}> : (tensor<2x1x169x12xf32, #ttnn_layout30>) -> tensor<2x1x1x12xf32, #ttnn_layout31>
        "ttnn.deallocate"(%33) <{force = false}> : (tensor<2x1x169x12xf32, #ttnn_layout30>) -> ()
        %35 = "ttnn.reshape"(%34) <{shape = [2 : i32, 12 : i32]}> : (tensor<2x1x1x12xf32, #ttnn_layout31>) -> tensor<2x12xf32, #ttnn_layout32>
        "ttnn.deallocate"(%34) <{force = false}> : (tensor<2x1x1x12xf32, #ttnn_layout31>) -> ()
        %36 = "ttnn.to_memory_config"(%35) : (tensor<2x12xf32, #ttnn_layout32>) -> tensor<2x12xf32, #ttnn_layout7>
        "ttnn.deallocate"(%35) <{force = false}> : (tensor<2x12xf32, #ttnn_layout32>) -> ()
        %37 = "ttnn.typecast"(%27) : (tensor<1x1x338x12xf32, #ttnn_layout23>) -> tensor<1x1x338x12xbf16, #ttnn_layout33>
        "ttnn.deallocate"(%27) <{force = false}> : (tensor<1x1x338x12xf32, #ttnn_layout23>) -> ()
        %38 = "ttnn.to_memory_config"(%37) : (tensor<1x1x338x12xbf16, #ttnn_layout33>) -> tensor<1x1x338x12xbf16, #ttnn_layout34>
        "ttnn.deallocate"(%37) <{force = false}> : (tensor<1x1x338x12xbf16, #ttnn_layout33>) -> ()
        %39 = "ttnn.max_pool2d"(%38) <{batch_size = 2 : si32, ceil_mode = false, channels = 12 : si32, config_tensors_in_dram = true, dilation = array<i32: 1, 1>, input_height = 13 : si32, input_width = 13 : si32, kernel_size = array<i32: 3, 3>, padding = array<i32: 1, 1>, reallocate_halo_output = false, stride = array<i32: 2, 2>}> : (tensor<1x1x338x12xbf16, #ttnn_layout34>) -> tensor<1x1x98x12xbf16, #ttnn_layout35>
        "ttnn.deallocate"(%38) <{force = false}> : (tensor<1x1x338x12xbf16, #ttnn_layout34>) -> ()
        %40 = "ttnn.to_layout"(%39) : (tensor<1x1x98x12xbf16, #ttnn_layout35>) -> tensor<1x1x98x12xf32, #ttnn_layout36>
        "ttnn.deallocate"(%39) <{force = false}> : (tensor<1x1x98x12xbf16, #ttnn_layout35>) -> ()
        %41 = "ttnn.reshape"(%40) <{shape = [2 : i32, 7 : i32, 7 : i32, 12 : i32]}> : (tensor<1x1x98x12xf32, #ttnn_layout36>) -> tensor<2x7x7x12xf32, #ttnn_layout37>
        "ttnn.deallocate"(%40) <{force = false}> : (tensor<1x1x98x12xf32, #ttnn_layout36>) -> ()
        %42 = "ttnn.to_memory_config"(%41) : (tensor<2x7x7x12xf32, #ttnn_layout37>) -> tensor<2x7x7x12xf32, #ttnn_layout8>
        "ttnn.deallocate"(%41) <{force = false}> : (tensor<2x7x7x12xf32, #ttnn_layout37>) -> ()
        return %32, %36, %42 : tensor<2x6x6x12xf32, #ttnn_layout6>, tensor<2x12xf32, #ttnn_layout7>, tensor<2x7x7x12xf32, #ttnn_layout8>
      }
    }
  }
}
