#dram = #ttnn.buffer_type<dram>
#ttnn_layout = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<1x300xbf16, #dram>, <interleaved>>
#ttnn_layout1 = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 960 + d1 * 32 + d2, d3), <1x1>, memref<60x1x!ttcore.tile<32x32, si32>, #dram>, <interleaved>>
#ttnn_layout2 = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 32 + d1 * 32 + d2, d3), <1x1>, memref<1x1x!ttcore.tile<32x32, si32>, #dram>, <interleaved>>
#ttnn_layout3 = #ttnn.ttnn_layout<(d0) -> (0, d0), <1x1>, memref<1x1x!ttcore.tile<32x32, si32>, #dram>, <interleaved>>
#ttnn_layout4 = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 32 + d1 * 32 + d2, d3), <1x1>, memref<2x1x!ttcore.tile<32x32, si32>, #dram>, <interleaved>>
#ttnn_layout5 = #ttnn.ttnn_layout<(d0, d1, d2) -> (d0 * 198 + d1, d2), <1x1>, memref<198x5xbf16, #dram>, <interleaved>>
#ttnn_layout6 = #ttnn.ttnn_layout<(d0, d1, d2) -> (d0 + d1, d2), <1x1>, memref<1x300xsi32, #dram>, <interleaved>>
#ttnn_layout7 = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 960 + d1 * 32 + d2, d3), <1x1>, memref<30x1x!ttcore.tile<32x32, si32>, #dram>, <interleaved>>
#ttnn_layout8 = #ttnn.ttnn_layout<(d0, d1, d2) -> (d0 * 32 + d1, d2), <1x1>, memref<1x10x!ttcore.tile<32x32, si32>, #dram>, <interleaved>>
#ttnn_layout9 = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 99 + d1 * 11 + d2, d3), <1x1>, memref<198x5xbf16, #dram>, <interleaved>>
#ttnn_layout10 = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 288 + d1 * 32 + d2, d3), <1x1>, memref<18x1x!ttcore.tile<32x32, bf16>, #dram>, <interleaved>>
#ttnn_layout11 = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 224 + d1 * 224 + d2, d3), <1x1>, memref<7x1x!ttcore.tile<32x32, bf16>, #dram>, <interleaved>>
#ttnn_layout12 = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 198 + d1 * 198 + d2, d3), <1x1>, memref<198x5xbf16, #dram>, <interleaved>>
#ttnn_layout13 = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 60 + d1 * 60 + d2, d3), <1x1>, memref<60x5xbf16, #dram>, <interleaved>>
#ttnn_layout14 = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 60 + d1 * 60 + d2, d3), <1x1>, memref<60x5xui16, #dram>, <interleaved>>
#ttnn_layout15 = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 64 + d1 * 64 + d2, d3), <1x1>, memref<2x1x!ttcore.tile<32x32, u16>, #dram>, <interleaved>>
#ttnn_layout16 = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 64 + d1 * 64 + d2, d3), <1x1>, memref<2x1x!ttcore.tile<32x32, si32>, #dram>, <interleaved>>
#ttnn_layout17 = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 30 + d1 + d2, d3), <1x1>, memref<60x5xsi32, #dram>, <interleaved>>
#ttnn_layout18 = #ttnn.ttnn_layout<(d0, d1, d2) -> (d0 * 2 + d1, d2), <1x1>, memref<2x300xsi32, #dram>, <interleaved>>
#ttnn_layout19 = #ttnn.ttnn_layout<(d0, d1, d2) -> (d0 * 224 + d1, d2), <1x1>, memref<7x1x!ttcore.tile<32x32, bf16>, #dram>, <interleaved>>
module @jit_poolgrad_bf16 attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32, ttcore.meshes = #ttcore.meshes<[<"mesh" = 1x1>]>} {
  ttcore.device_module {
    builtin.module @jit_poolgrad_bf16 attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32, ttcore.meshes = #ttcore.meshes<[<"mesh" = 1x1>]>, ttcore.system_desc = #system_desc, ttnn.l1_const_eval_usage = 1024 : ui64} {
      func.func private @main_const_eval_0() -> tensor<1x300xbf16, #ttnn_layout> attributes {tt.function_type = "const_eval"} {
        %0 = "ttnn.get_device"() <{mesh_offset = #ttnn<mesh_offset 0x0>, mesh_shape = #ttnn<mesh_shape 1x1>}> : () -> !ttnn.device
        %1 = "ttnn.full"(%0) <{fill_value = 2.000000e+00 : f32, shape = #ttnn.shape<1x300>}> : (!ttnn.device) -> tensor<1x300xbf16, #ttnn_layout>
        return %1 : tensor<1x300xbf16, #ttnn_layout>
      }
      func.func private @main_const_eval_1() -> tensor<2x30x1x5xsi32, #ttnn_layout1> attributes {tt.function_type = "const_eval"} {
        %0 = "ttnn.get_device"() <{mesh_offset = #ttnn<mesh_offset 0x0>, mesh_shape = #ttnn<mesh_shape 1x1>}> : () -> !ttnn.device
        %1 = "ttnn.full"(%0) <{fill_value = 99 : i32, shape = #ttnn.shape<1x1x1x1>}> : (!ttnn.device) -> tensor<1x1x1x1xsi32, #ttnn_layout2>
        %2 = "ttnn.arange"(%0) <{end = 2 : si64, start = 0 : si64, step = 1 : si64}> : (!ttnn.device) -> tensor<2xsi32, #ttnn_layout3>
        %3 = "ttnn.reshape"(%2) <{shape = [2 : i32, 1 : i32, 1 : i32, 1 : i32]}> : (tensor<2xsi32, #ttnn_layout3>) -> tensor<2x1x1x1xsi32, #ttnn_layout4>
        "ttnn.deallocate"(%2) <{force = false}> : (tensor<2xsi32, #ttnn_layout3>) -> ()
        %4 = "ttnn.multiply"(%3, %1) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<2x1x1x1xsi32, #ttnn_layout4>, tensor<1x1x1x1xsi32, #ttnn_layout2>) -> tensor<2x1x1x1xsi32, #ttnn_layout4>
        "ttnn.deallocate"(%3) <{force = false}> : (tensor<2x1x1x1xsi32, #ttnn_layout4>) -> ()
        "ttnn.deallocate"(%1) <{force = false}> : (tensor<1x1x1x1xsi32, #ttnn_layout2>) -> ()
        %5 = "ttnn.repeat"(%4) <{repeat_dims = #ttnn.shape<1x30x1x5>}> : (tensor<2x1x1x1xsi32, #ttnn_layout4>) -> tensor<2x30x1x5xsi32, #ttnn_layout1>
        "ttnn.deallocate"(%4) <{force = false}> : (tensor<2x1x1x1xsi32, #ttnn_layout4>) -> ()
        return %5 : tensor<2x30x1x5xsi32, #ttnn_layout1>
      }
      func.func private @main_const_eval_2() -> tensor<1x198x5xbf16, #ttnn_layout5> attributes {tt.function_type = "const_eval"} {
        %0 = "ttnn.get_device"() <{mesh_offset = #ttnn<mesh_offset 0x0>, mesh_shape = #ttnn<mesh_shape 1x1>}> : () -> !ttnn.device
        %1 = "ttnn.zeros"(%0) <{shape = #ttnn.shape<1x198x5>}> : (!ttnn.device) -> tensor<1x198x5xbf16, #ttnn_layout5>
        return %1 : tensor<1x198x5xbf16, #ttnn_layout5>
      }
      func.func private @main_const_eval_3() -> tensor<1x1x300xsi32, #ttnn_layout6> attributes {tt.function_type = "const_eval"} {
        %0 = "ttnn.get_device"() <{mesh_offset = #ttnn<mesh_offset 0x0>, mesh_shape = #ttnn<mesh_shape 1x1>}> : () -> !ttnn.device
        %1 = "ttnn.arange"(%0) <{end = 5 : si64, start = 0 : si64, step = 1 : si64}> : (!ttnn.device) -> tensor<5xsi32, #ttnn_layout3>
        %2 = "ttnn.reshape"(%1) <{shape = [1 : i32, 1 : i32, 1 : i32, 5 : i32]}> : (tensor<5xsi32, #ttnn_layout3>) -> tensor<1x1x1x5xsi32, #ttnn_layout2>
        "ttnn.deallocate"(%1) <{force = false}> : (tensor<5xsi32, #ttnn_layout3>) -> ()
        %3 = "ttnn.repeat"(%2) <{repeat_dims = #ttnn.shape<1x30x2x1>}> : (tensor<1x1x1x5xsi32, #ttnn_layout2>) -> tensor<1x30x2x5xsi32, #ttnn_layout7>
        "ttnn.deallocate"(%2) <{force = false}> : (tensor<1x1x1x5xsi32, #ttnn_layout2>) -> ()
        %4 = "ttnn.reshape"(%3) <{shape = [1 : i32, 1 : i32, 300 : i32]}> : (tensor<1x30x2x5xsi32, #ttnn_layout7>) -> tensor<1x1x300xsi32, #ttnn_layout8>
        "ttnn.deallocate"(%3) <{force = false}> : (tensor<1x30x2x5xsi32, #ttnn_layout7>) -> ()
        %5 = "ttnn.to_layout"(%4) : (tensor<1x1x300xsi32, #ttnn_layout8>) -> tensor<1x1x300xsi32, #ttnn_layout6>
        "ttnn.deallocate"(%4) <{force = false}> : (tensor<1x1x300xsi32, #ttnn_layout8>) -> ()
        return %5 : tensor<1x1x300xsi32, #ttnn_layout6>
      }
      func.func public @main(%arg0: tensor<2x9x11x5xbf16, #ttnn_layout9> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<2x9x11x5xbf16>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}) -> (tensor<2x9x11x5xbf16, #ttnn_layout10> {jax.result_info = "result", ttcore.local_shape = #ttcore<local_shape local_shape = tensor<2x9x11x5xbf16>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}) attributes {tt.function_type = "forward_device"} {
        %0 = ttcore.load_cached(@main_const_eval_0, []) : () -> tensor<1x300xbf16, #ttnn_layout>
        %1 = ttcore.load_cached(@main_const_eval_2, []) : () -> tensor<1x198x5xbf16, #ttnn_layout5>
        %2 = ttcore.load_cached(@main_const_eval_1, []) : () -> tensor<2x30x1x5xsi32, #ttnn_layout1>
        %3 = ttcore.load_cached(@main_const_eval_3, []) : () -> tensor<1x1x300xsi32, #ttnn_layout6>
        %4 = "ttnn.to_layout"(%arg0) : (tensor<2x9x11x5xbf16, #ttnn_layout9>) -> tensor<2x9x11x5xbf16, #ttnn_layout10>
        "ttnn.deallocate"(%arg0) <{force = false}> : (tensor<2x9x11x5xbf16, #ttnn_layout9>) -> ()
        %5 = "ttnn.reshape"(%4) <{shape = [1 : i32, 1 : i32, 198 : i32, 5 : i32]}> : (tensor<2x9x11x5xbf16, #ttnn_layout10>) -> tensor<1x1x198x5xbf16, #ttnn_layout11>
        "ttnn.deallocate"(%4) <{force = false}> : (tensor<2x9x11x5xbf16, #ttnn_layout10>) -> ()
        %6 = "ttnn.to_layout"(%5) : (tensor<1x1x198x5xbf16, #ttnn_layout11>) -> tensor<1x1x198x5xbf16, #ttnn_layout12>
        "ttnn.deallocate"(%5) <{force = false}> : (tensor<1x1x198x5xbf16, #ttnn_layout11>) -> ()
        %result, %result_indices = "ttnn.max_pool2d_with_indices"(%6) <{batch_size = 2 : si32, ceil_mode = false, channels = 5 : si32, config_tensors_in_dram = true, dilation = array<i32: 1, 1>, input_height = 9 : si32, input_width = 11 : si32, kernel_size = array<i32: 3, 3>, padding = array<i32: 1, 1>, reallocate_halo_output = false, stride = array<i32: 2, 2>}> : (tensor<1x1x198x5xbf16, #ttnn_layout12>) -> (tensor<1x1x60x5xbf16, #ttnn_layout13>, tensor<1x1x60x5xui16, #ttnn_layout14>)
        "ttnn.deallocate"(%result) <{force = false}> : (tensor<1x1x60x5xbf16, #ttnn_layout13>) -> ()
        "ttnn.deallocate"(%6) <{force = false}> : (tensor<1x1x198x5xbf16, #ttnn_layout12>) -> ()
        %7 = "ttnn.to_layout"(%result_indices) : (tensor<1x1x60x5xui16, #ttnn_layout14>) -> tensor<1x1x60x5xui16, #ttnn_layout15>
        "ttnn.deallocate"(%result_indices) <{force = false}> : (tensor<1x1x60x5xui16, #ttnn_layout14>) -> ()
        %8 = "ttnn.typecast"(%7) : (tensor<1x1x60x5xui16, #ttnn_layout15>) -> tensor<1x1x60x5xsi32, #ttnn_layout16>
        "ttnn.deallocate"(%7) <{force = false}> : (tensor<1x1x60x5xui16, #ttnn_layout15>) -> ()
        %9 = "ttnn.reshape"(%8) <{shape = [2 : i32, 30 : i32, 1 : i32, 5 : i32]}> : (tensor<1x1x60x5xsi32, #ttnn_layout16>) -> tensor<2x30x1x5xsi32, #ttnn_layout1>
        "ttnn.deallocate"(%8) <{force = false}> : (tensor<1x1x60x5xsi32, #ttnn_layout16>) -> ()
        %10 = "ttnn.add"(%2, %9) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<2x30x1x5xsi32, #ttnn_layout1>, tensor<2x30x1x5xsi32, #ttnn_layout1>) -> tensor<2x30x1x5xsi32, #ttnn_layout1>
        "ttnn.deallocate"(%9) <{force = false}> : (tensor<2x30x1x5xsi32, #ttnn_layout1>) -> ()
        "ttnn.deallocate"(%2) <{force = false}> : (tensor<2x30x1x5xsi32, #ttnn_layout1>) -> ()
        %11 = "ttnn.to_layout"(%10) : (tensor<2x30x1x5xsi32, #ttnn_layout1>) -> tensor<2x30x1x5xsi32, #ttnn_layout17>
        "ttnn.deallocate"(%10) <{force = false}> : (tensor<2x30x1x5xsi32, #ttnn_layout1>) -> ()
        %12 = "ttnn.reshape"(%11) <{shape = [1 : i32, 1 : i32, 300 : i32]}> : (tensor<2x30x1x5xsi32, #ttnn_layout17>) -> tensor<1x1x300xsi32, #ttnn_layout6>
        "ttnn.deallocate"(%11) <{force = false}> : (tensor<2x30x1x5xsi32, #ttnn_layout17>) -> ()
        %13 = "ttnn.concat"(%12, %3) <{dim = 1 : si32}> : (tensor<1x1x300xsi32, #ttnn_layout6>, tensor<1x1x300xsi32, #ttnn_layout6>) -> tensor<1x2x300xsi32, #ttnn_layout18>
        "ttnn.deallocate"(%12) <{force = false}> : (tensor<1x1x300xsi32, #ttnn_layout6>) -> ()
        "ttnn.deallocate"(%3) <{force = false}> : (tensor<1x1x300xsi32, #ttnn_layout6>) -> ()
        %14 = "ttnn.rows_scatter"(%1, %13, %0) <{column = true, reduce = #ttcore.reduce_type<sum>, sizes = array<i64: 198, 5>, windows = array<i64: 1, 1>}> : (tensor<1x198x5xbf16, #ttnn_layout5>, tensor<1x2x300xsi32, #ttnn_layout18>, tensor<1x300xbf16, #ttnn_layout>) -> tensor<1x198x5xbf16, #ttnn_layout5>
        "ttnn.deallocate"(%13) <{force = false}> : (tensor<1x2x300xsi32, #ttnn_layout18>) -> ()
        "ttnn.deallocate"(%1) <{force = false}> : (tensor<1x198x5xbf16, #ttnn_layout5>) -> ()
        "ttnn.deallocate"(%0) <{force = false}> : (tensor<1x300xbf16, #ttnn_layout>) -> ()
        %15 = "ttnn.to_layout"(%14) : (tensor<1x198x5xbf16, #ttnn_layout5>) -> tensor<1x198x5xbf16, #ttnn_layout19>
        "ttnn.deallocate"(%14) <{force = false}> : (tensor<1x198x5xbf16, #ttnn_layout5>) -> ()
        %16 = "ttnn.reshape"(%15) <{shape = [2 : i32, 9 : i32, 11 : i32, 5 : i32]}> : (tensor<1x198x5xbf16, #ttnn_layout19>) -> tensor<2x9x11x5xbf16, #ttnn_layout10>
        "ttnn.deallocate"(%15) <{force = false}> : (tensor<1x198x5xbf16, #ttnn_layout19>) -> ()
        return %16 : tensor<2x9x11x5xbf16, #ttnn_layout10>
      }
    }
  }
}
