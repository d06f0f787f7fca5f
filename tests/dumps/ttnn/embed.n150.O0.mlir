#dram = #ttnn.buffer_type<dram>
#ttnn_layout = #ttnn.ttnn_layout<(d0, d1, d2) -> (d0 * 32 + d1, d2), <1x1>, memref<1x1x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout1 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<1x1x!ttcore.tile<32x32, si32>, #dram>, <interleaved>>
#ttnn_layout2 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<100x48xf32, #dram>, <interleaved>>
#ttnn_layout3 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<3x17xsi32, #dram>, <interleaved>>
#ttnn_layout4 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<17x48xf32, #dram>, <interleaved>>
#ttnn_layout5 = #ttnn.ttnn_layout<(d0, d1, d2) -> (d0 * 32 + d1, d2), <1x1>, memref<3x2x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout6 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<1x1x!ttcore.tile<32x32, bf16>, #dram>, <interleaved>>
#ttnn_layout7 = #ttnn.ttnn_layout<(d0, d1, d2) -> (d0 * 100 + d1, d2), <1x1>, memref<100x48xf32, #dram>, <interleaved>>
#ttnn_layout8 = #ttnn.ttnn_layout<(d0, d1, d2) -> (d0 + d1, d2), <1x1>, memref<1x51xsi32, #dram>, <interleaved>>
#ttnn_layout9 = #ttnn.ttnn_layout<(d0, d1, d2) -> (d0 * 51 + d1, d2), <1x1>, memref<51x48xf32, #dram>, <interleaved>>
#ttnn_layout10 = #ttnn.ttnn_layout<(d0, d1, d2) -> (d0 * 64 + d1, d2), <1x1>, memref<2x2x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout11 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<1x2x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout12 = #ttnn.ttnn_layout<(d0, d1, d2) -> (d0 * 32 + d1, d2), <1x1>, memref<1x2x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
module @jit_embed attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32, ttcore.meshes = #ttcore.meshes<[<"mesh" = 1x1>]>} {
  ttcore.device_module {
    builtin.module @jit_embed attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32, ttcore.meshes = #ttcore.meshes<[<"mesh" = 1x1>]>, ttcore.system_desc = #system_desc, ttnn.l1_const_eval_usage = 1024 : ui64} {
      func.func private @main_const_eval_0() -> tensor<1x1x1xf32, #ttnn_layout> attributes {tt.function_type = "const_eval"} {
        %0 = "ttnn.get_device"() <{mesh_offset = #ttnn<mesh_offset 0x0>, mesh_shape = #ttnn<mesh_shape 1x1>}> : () -> !ttnn.device
        %1 = "ttnn.full"(%0) <{fill_value = 2.000000e+00 : f32, shape = #ttnn.shape<1x1x1>}> : (!ttnn.device) -> tensor<1x1x1xf32, #ttnn_layout>
        return %1 : tensor<1x1x1xf32, #ttnn_layout>
      }
      func.func private @main_const_eval_1() -> tensor<1x1xsi32, #ttnn_layout1> attributes {tt.function_type = "const_eval"} {
        %0 = "ttnn.get_device"() <{mesh_offset = #ttnn<mesh_offset 0x0>, mesh_shape = #ttnn<mesh_shape 1x1>}> : () -> !ttnn.device
        %1 = "ttnn.zeros"(%0) <{shape = #ttnn.shape<1x1>}> : (!ttnn.device) -> tensor<1x1xsi32, #ttnn_layout1>
        return %1 : tensor<1x1xsi32, #ttnn_layout1>
      }
      func.func private @main_const_eval_2() -> tensor<1x1xsi32, #ttnn_layout1> attributes {tt.function_type = "const_eval"} {
        %0 = "ttnn.get_device"() <{mesh_offset = #ttnn<mesh_offset 0x0>, mesh_shape = #ttnn<mesh_shape 1x1>}> : () -> !ttnn.device
        %1 = "ttnn.full"(%0) <{fill_value = 100 : i32, shape = #ttnn.shape<1x1>}> : (!ttnn.device) -> tensor<1x1xsi32, #ttnn_layout1>
        return %1 : tensor<1x1xsi32, #ttnn_layout1>
      }
      func.func public @main(%arg0: tensor<100x48xf32, #ttnn_layout2> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<100x48xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, %arg1: tensor<3x17xsi32, #ttnn_layout3> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<3x17xi32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, %arg2: tensor<17x48xf32, #ttnn_layout4> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<17x48xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}) -> (tensor<3x17x48xf32, #ttnn_layout5> {jax.result_info = "result", ttcore.local_shape = #ttcore<local_shape local_shape = tensor<3x17x48xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}) attributes {tt.function_type = "forward_device"} {
        %0 = ttcore.load_cached(@main_const_eval_0, []) : () -> tensor<1x1x1xf32, #ttnn_layout>
        %1 = ttcore.load_cached(@main_const_eval_2, []) : () -> tensor<1x1xsi32, #ttnn_layout1>
        %2 = ttcore.load_cached(@main_const_eval_1, []) : () -> tensor<1x1xsi32, #ttnn_layout1>
        %3 = "ttnn.to_layout"(%arg1) : (tensor<3x17xsi32, #ttnn_layout3>) -> tensor<3x17xsi32, #ttnn_layout1>
        "ttnn.deallocate"(%arg1) <{force = false}> : (tensor<3x17xsi32, #ttnn_layout3>) -> ()
        %4 = "ttnn.gt"(%2, %3) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<1x1xsi32, #ttnn_layout1>, tensor<3x17xsi32, #ttnn_layout1>) -> tensor<3x17xbf16, #ttnn_layout6>
        "ttnn.deallocate"(%2) <{force = false}> : (tensor<1x1xsi32, #ttnn_layout1>) -> ()
        %5 = "ttnn.add"(%3, %1) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<3x17xsi32, #ttnn_layout1>, tensor<1x1xsi32, #ttnn_layout1>) -> tensor<3x17xsi32, #ttnn_layout1>
        "ttnn.deallocate"(%1) <{force = false}> : (tensor<1x1xsi32, #ttnn_layout1>) -> ()
        %6 = "ttnn.where"(%4, %5, %3) : (tensor<3x17xbf16, #ttnn_layout6>, tensor<3x17xsi32, #ttnn_layout1>, tensor<3x17xsi32, #ttnn_layout1>) -> tensor<3x17xsi32, #ttnn_layout1>
        "ttnn.deallocate"(%5) <{force = false}> : (tensor<3x17xsi32, #ttnn_layout1>) -> ()
        "ttnn.deallocate"(%4) <{force = false}> : (tensor<3x17xbf16, #ttnn_layout6>) -> ()
        "ttnn.deallocate"(%3) <{force = false}> : (tensor<3x17xsi32, #ttnn_layout1>) -> ()
        %7 = "ttnn.reshape"(%arg0) <{shape = [1 : i32, 100 : i32, 48 : i32]}> : (tensor<100x48xf32, #ttnn_layout2>) -> tensor<1x100x48xf32, #ttnn_layout7>
        "ttnn.deallocate"(%arg0) <{force = false}> : (tensor<100x48xf32, #ttnn_layout2>) -> ()
        %8 = "ttnn.to_layout"(%6) : (tensor<3x17xsi32, #ttnn_layout1>) -> tensor<3x17xsi32, #ttnn_layout3>
        "ttnn.deallocate"(%6) <{force = false}> : (tensor<3x17xsi32, #ttnn_layout1>) -> ()
        %9 = "ttnn.reshape"(%8) <{shape = [1 : i32, 1 : i32, 51 : i32]}> : (tensor<3x17xsi32, #ttnn_layout3>) -> tensor<1x1x51xsi32, #ttnn_layout8>
        "ttnn.deallocate"(%8) <{force = false}> : (tensor<3x17xsi32, #ttnn_layout3>) -> ()
        %10 = "ttnn.rows_gather"(%7, %9) <{column = false, fill_out_of_bounds = false, sizes = array<i64: 100>, windows = array<i64: 1>}> : (tensor<1x100x48xf32, #ttnn_layout7>, tensor<1x1x51xsi32, #ttnn_layout8>) -> tensor<1x51x48xf32, #ttnn_layout9>
        "ttnn.deallocate"(%9) <{force = false}> : (tensor<1x1x51xsi32, #ttnn_layout8>) -> ()
        "ttnn.deallocate"(%7) <{force = false}> : (tensor<1x100x48xf32, #ttnn_layout7>) -> ()
        %11 = "ttnn.to_layout"(%10) : (tensor<1x51x48xf32, #ttnn_layout9>) -> tensor<1x51x48xf32, #ttnn_layout10>
        "ttnn.deallocate"(%10) <{force = false}> : (tensor<1x51x48xf32, #ttnn_layout9>) -> ()
        %12 = "ttnn.multiply"(%11, %0) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<1x51x48xf32, #ttnn_layout10>, tensor<1x1x1xf32, #ttnn_layout>) -> tensor<1x51x48xf32, #ttnn_layout10>
        "ttnn.deallocate"(%11) <{force = false}> : (tensor<1x51x48xf32, #ttnn_layout10>) -> ()
        "ttnn.deallocate"(%0) <{force = false}> : (tensor<1x1x1xf32, #ttnn_layout>) -> ()
        %13 = "ttnn.reshape"(%12) <{shape = [3 : i32, 17 : i32, 48 : i32]}> : (tensor<1x51x48xf32, #ttnn_layout10>) -> tensor<3x17x48xf32, #ttnn_layout5>
        "ttnn.deallocate"(%12) <{force = false}> : (tensor<1x51x48xf32, #ttnn_layout10>) -> ()
        %14 = "ttnn.to_layout"(%arg2) : (tensor<17x48xf32, #ttnn_layout4>) -> tensor<17x48xf32, #ttnn_layout11>
        "ttnn.deallocate"(%arg2) <{force = false}> : (tensor<17x48xf32, #ttnn_layout4>) -> ()
        %15 = "ttnn.reshape"(%14) <{shape = [1 : i32, 17 : i32, 48 : i32]}> : (tensor<17x48xf32, #ttnn_layout11>) -> tensor<1x17x48xf32, #ttnn_layout12>
        "ttnn.deallocate"(%14) <{force = false}> : (tensor<17x48xf32, #ttnn_layout11>) -> ()
        %16 = "ttnn.add"(%13, %15) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<3x17x48xf32, #ttnn_layout5>, tensor<1x17x48xf32, #ttnn_layout12>) -> tensor<3x17x48xf32, #ttnn_layout5>
        "ttnn.deallocate"(%15) <{force = false}> : (tensor<1x17x48xf32, #ttnn_layout12>) -> ()
        "ttnn.deallocate"(%13) <{force = false}> : (tensor<3x17x48xf32, #ttnn_layout5>) -> ()
        return %16 : tensor<3x17x48xf32, #ttnn_layout5>
      }
    }
  }
}
