#dram = #ttnn.buffer_type<dram>
#system_memory = #ttnn.buffer_type<system_memory>
#ttnn_layout = #ttnn.ttnn_layout<(d0, d1, d2) -> (d0 + d1, d2), <1x1>, memref<1x9xsi32, #dram>, <interleaved>>
#ttnn_layout1 = #ttnn.ttnn_layout<(d0) -> (0, d0), <1x1>, memref<1x1x!ttcore.tile<32x32, si32>, #dram>, <interleaved>>
#ttnn_layout2 = #ttnn.ttnn_layout<(d0, d1, d2) -> (d0 * 32 + d1, d2), <1x1>, memref<1x1x!ttcore.tile<32x32, si32>, #dram>, <interleaved>>
#ttnn_layout3 = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 63 + d1 * 9 + d2, d3), <1x1>, memref<126x4xf32, #dram>, <interleaved>>
#ttnn_layout4 = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 12 + d1 * 4 + d2, d3), <1x1>, memref<36x6xf32, #dram>, <interleaved>>
#ttnn_layout5 = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 448 + d1 * 32 + d2, d3), <1x1>, memref<28x1x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout6 = #ttnn.ttnn_layout<(d0, d1, d2) -> (d0 * 9 + d1, d2), <1x1>, memref<9x24xf32, #dram>, <interleaved>>
#ttnn_layout7 = #ttnn.ttnn_layout<(d0, d1, d2) -> (d0 * 32 + d1, d2), <1x1>, memref<1x1x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout8 = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 96 + d1 * 32 + d2, d3), <1x1>, memref<9x1x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout9 = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 192 + d1 * 32 + d2, d3), <1x1>, memref<24x1x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout10 = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 224 + d1 * 32 + d2, d3), <1x1>, memref<14x1x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout11 = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 128 + d1 * 128 + d2, d3), <1x1>, memref<4x1x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout12 = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 18 + d1 * 3 + d2, d3), <1x1>, memref<72x3xf32, #dram>, <interleaved>>
#ttnn_layout13 = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 18 + d1 * 3 + d2, d3), <1x1>, memref<72x3xf32, #system_memory>>
#ttnn_layout14 = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 126 + d1 * 126 + d2, d3), <1x1>, memref<126x4xf32, #dram>, <interleaved>>
#ttnn_layout15 = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 512 + d1 * 512 + d2, d3), <1x1>, memref<16x1x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
module @jit_convt attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32, ttcore.meshes = #ttcore.meshes<[<"mesh" = 1x1>]>} {
  ttcore.device_module {
    builtin.module @jit_convt attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32, ttcore.meshes = #ttcore.meshes<[<"mesh" = 1x1>]>, ttcore.system_desc = #system_desc, ttnn.l1_const_eval_usage = 1024 : ui64} {
      func.func private @main_const_eval_0() -> tensor<1x1x9xsi32, #ttnn_layout> attributes {tt.function_type = "const_eval"} {
        %0 = "ttnn.get_device"() <{mesh_offset = #ttnn<mesh_offset 0x0>, mesh_shape = #ttnn<mesh_shape 1x1>}> : () -> !ttnn.device
        %1 = "ttnn.arange"(%0) <{end = -1 : si64, start = 8 : si64, step = -1 : si64}> : (!ttnn.device) -> tensor<9xsi32, #ttnn_layout1>
        %2 = "ttnn.reshape"(%1) <{shape = [1 : i32, 1 : i32, 9 : i32]}> : (tensor<9xsi32, #ttnn_layout1>) -> tensor<1x1x9xsi32, #ttnn_layout2>
        "ttnn.deallocate"(%1) <{force = false}> : (tensor<9xsi32, #ttnn_layout1>) -> ()
        %3 = "ttnn.to_layout"(%2) : (tensor<1x1x9xsi32, #ttnn_layout2>) -> tensor<1x1x9xsi32, #ttnn_layout>
        "ttnn.deallocate"(%2) <{force = false}> : (tensor<1x1x9xsi32, #ttnn_layout2>) -> ()
        return %3 : tensor<1x1x9xsi32, #ttnn_layout>
      }
      func.func public @main(%arg0: tensor<2x7x9x4xf32, #ttnn_layout3> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<2x7x9x4xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, %arg1: tensor<3x3x4x6xf32, #ttnn_layout4> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<3x3x4x6xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}) -> (tensor<2x14x18x6xf32, #ttnn_layout5> {jax.result_info = "result", ttcore.local_shape = #ttcore<local_shape local_shape = tensor<2x14x18x6xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}) attributes {tt.function_type = "forward_device"} {
        %0 = ttcore.load_cached(@main_const_eval_0, []) : () -> tensor<1x1x9xsi32, #ttnn_layout>
        %1 = "ttnn.get_device"() <{mesh_offset = #ttnn<mesh_offset 0x0>, mesh_shape = #ttnn<mesh_shape 1x1>}> : () -> !ttnn.device
        %2 = "ttnn.reshape"(%arg1) <{shape = [1 : i32, 9 : i32, 24 : i32]}> : (tensor<3x3x4x6xf32, #ttnn_layout4>) -> tensor<1x9x24xf32, #ttnn_layout6>
        "ttnn.deallocate"(%arg1) <{force = false}> : (tensor<3x3x4x6xf32, #ttnn_layout4>) -> ()
        %3 = "ttnn.rows_gather"(%2, %0) <{column = false, fill_out_of_bounds = false, sizes = array<i64: 9>, windows = array<i64: 1>}> : (tensor<1x9x24xf32, #ttnn_layout6>, tensor<1x1x9xsi32, #ttnn_layout>) -> tensor<1x9x24xf32, #ttnn_layout6>
        "ttnn.deallocate"(%2) <{force = false}> : (tensor<1x9x24xf32, #ttnn_layout6>) -> ()
        "ttnn.deallocate"(%0) <{force = false}> : (tensor<1x1x9xsi32, #ttnn_layout>) -> ()
        %4 = "ttnn.to_layout"(%3) : (tensor<1x9x24xf32, #ttnn_layout6>) -> tensor<1x9x24xf32, #ttnn_layout7>
        "ttnn.deallocate"(%3) <{force = false}> : (tensor<1x9x24xf32, #ttnn_layout6>) -> ()
        %5 = "ttnn.reshape"(%4) <{shape = [3 : i32, 3 : i32, 4 : i32, 6 : i32]}> : (tensor<1x9x24xf32, #ttnn_layout7>) -> tensor<3x3x4x6xf32, #ttnn_layout8>
        "ttnn.deallocate"(%4) <{force = false}> : (tensor<1x9x24xf32, #ttnn_layout7>) -> ()
        %6 = "ttnn.permute"(%5) <{permutation = array<i64: 2, 3, 0, 1>}> : (tensor<3x3x4x6xf32, #ttnn_layout8>) -> tensor<4x6x3x3xf32, #ttnn_layout9>
        "ttnn.deallocate"(%5) <{force = false}> : (tensor<3x3x4x6xf32, #ttnn_layout8>) -> ()
        %7 = "ttnn.to_layout"(%arg0) : (tensor<2x7x9x4xf32, #ttnn_layout3>) -> tensor<2x7x9x4xf32, #ttnn_layout10>
        "ttnn.deallocate"(%arg0) <{force = false}> : (tensor<2x7x9x4xf32, #ttnn_layout3>) -> ()
        %8 = "ttnn.reshape"(%7) <{shape = [1 : i32, 1 : i32, 126 : i32, 4 : i32]}> : (tensor<2x7x9x4xf32, #ttnn_layout10>) -> tensor<1x1x126x4xf32, #ttnn_layout11>
        "ttnn.deallocate"(%7) <{force = false}> : (tensor<2x7x9x4xf32, #ttnn_layout10>) -> ()
        %9 = "ttnn.to_layout"(%6) : (tensor<4x6x3x3xf32, #ttnn_layout9>) -> tensor<4x6x3x3xf32, #ttnn_layout12>
        "ttnn.deallocate"(%6) <{force = false}> : (tensor<4x6x3x3xf32, #ttnn_layout9>) -> ()
        %10 = "ttnn.from_device"(%9) : (tensor<4x6x3x3xf32, #ttnn_layout12>) -> tensor<4x6x3x3xf32, #ttnn_layout13>
        "ttnn.deallocate"(%9) <{force = false}> : (tensor<4x6x3x3xf32, #ttnn_layout12>) -> ()
        %11 = "ttnn.to_layout"(%8) : (tensor<1x1x126x4xf32, #ttnn_layout11>) -> tensor<1x1x126x4xf32, #ttnn_layout14>
        "ttnn.deallocate"(%8) <{force = false}> : (tensor<1x1x126x4xf32, #ttnn_layout11>) -> ()
        %12 = "ttnn.conv_transpose2d"(%11, %10, %1) <{batch_size = 2 : i32, compute_config = #ttnn.device_compute_kernel_config<math_fidelity = hifi4, fp32_dest_acc_en = true>, conv2d_config = #ttnn.conv2d_config<enable_kernel_stride_folding = false, config_tensors_in_dram = true>, dilation = array<i32: 1, 1>, groups = 1 : i32, in_channels = 4 : i32, input_height = 7 : i32, input_width = 9 : i32, kernel_size = array<i32: 3, 3>, out_channels = 6 : i32, output_padding = array<i32: 0, 0>, padding = array<i32: 0, 0, 1, 1>, stride = array<i32: 2, 2>}> : (tensor<1x1x126x4xf32, #ttnn_layout14>, tensor<4x6x3x3xf32, #ttnn_layout13>, !ttnn.device) -> tensor<1x1x504x6xf32, #ttnn_layout15>
        "ttnn.deallocate"(%11) <{force = false}> : (tensor<1x1x126x4xf32, #ttnn_layout14>) -> ()
        "ttnn.deallocate"(%10) <{force = false}> : (tensor<4x6x3x3xf32, #ttnn_layout13>) -> ()
        %13 = "ttnn.reshape"(%12) <{shape = [2 : i32, 14 : i32, 18 : i32, 6 : i32]}> : (tensor<1x1x504x6xf32, #ttnn_layout15>) -> tensor<2x14x18x6xf32, #ttnn_layout5>
        "ttnn.deallocate"(%12) <{force = false}> : (tensor<1x1x504x6xf32, #ttnn_layout15>) -> ()
        return %13 : tensor<2x14x18x6xf32, #ttnn_layout5>
      }
    }
  }
}
