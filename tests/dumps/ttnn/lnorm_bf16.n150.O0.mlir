#dram = #ttnn.buffer_type<dram>
#ttnn_layout = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<1x1x!ttcore.tile<32x32, bf16>, #dram>, <interleaved>>
#ttnn_layout1 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<100x70xbf16, #dram>, <interleaved>>
#ttnn_layout2 = #ttnn.ttnn_layout<(d0) -> (0, d0), <1x1>, memref<1x70xbf16, #dram>, <interleaved>>
#ttnn_layout3 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<4x3x!ttcore.tile<32x32, bf16>, #dram>, <interleaved>>
#ttnn_layout4 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<4x3x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout5 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<4x1x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout6 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<4x1x!ttcore.tile<32x32, bf16>, #dram>, <interleaved>>
#ttnn_layout7 = #ttnn.ttnn_layout<(d0) -> (0, d0), <1x1>, memref<1x3x!ttcore.tile<32x32, bf16>, #dram>, <interleaved>>
#ttnn_layout8 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<1x3x!ttcore.tile<32x32, bf16>, #dram>, <interleaved>>
module @jit_lnorm attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32, ttcore.meshes = #ttcore.meshes<[<"mesh" = 1x1>]>} {
  ttcore.device_module {
    builtin.module @jit_lnorm attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32, ttcore.meshes = #ttcore.meshes<[<"mesh" = 1x1>]>, ttcore.system_desc = #system_desc, ttnn.l1_const_eval_usage = 1024 : ui64} {
      func.func private @main_const_eval_0() -> tensor<1x1xbf16, #ttnn_layout> attributes {tt.function_type = "const_eval"} {
        %0 = "ttnn.get_device"() <{mesh_offset = #ttnn<mesh_offset 0x0>, mesh_shape = #ttnn<mesh_shape 1x1>}> : () -> !ttnn.device
        %1 = "ttnn.full"(%0) <{fill_value = 1.00135803E-5 : f32, shape = #ttnn.shape<1x1>}> : (!ttnn.device) -> tensor<1x1xbf16, #ttnn_layout>
        return %1 : tensor<1x1xbf16, #ttnn_layout>
      }
      func.func public @main(%arg0: tensor<100x70xbf16, #ttnn_layout1> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<100x70xbf16>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, %arg1: tensor<70xbf16, #ttnn_layout2> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<70xbf16>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, %arg2: tensor<70xbf16, #ttnn_layout2> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<70xbf16>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}) -> (tensor<100x70xbf16, #ttnn_layout3> {jax.result_info = "result", ttcore.local_shape = #ttcore<local_shape local_shape = tensor<100x70xbf16>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}) attributes {tt.function_type = "forward_device"} {
        %0 = ttcore.load_cached(@main_const_eval_0, []) : () -> tensor<1x1xbf16, #ttnn_layout>
        %1 = "ttnn.to_layout"(%arg0) : (tensor<100x70xbf16, #ttnn_layout1>) -> tensor<100x70xbf16, #ttnn_layout3>
        "ttnn.deallocate"(%arg0) <{force = false}> : (tensor<100x70xbf16, #ttnn_layout1>) -> ()
        %2 = "ttnn.typecast"(%1) : (tensor<100x70xbf16, #ttnn_layout3>) -> tensor<100x70xf32, #ttnn_layout4>
        %3 = "ttnn.mean"(%2) <{compute_config = #ttnn.device_compute_kernel_config<math_fidelity = hifi4, fp32_dest_acc_en = true>, dim_arg = [1 : i32], keep_dim = true}> : (tensor<100x70xf32, #ttnn_layout4>) -> tensor<100x1xf32, #ttnn_layout5>
        "ttnn.deallocate"(%2) <{force = false}> : (tensor<100x70xf32, #ttnn_layout4>) -> ()
        %4 = "ttnn.typecast"(%3) : (tensor<100x1xf32, #ttnn_layout5>) -> tensor<100x1xbf16, #ttnn_layout6>
        "ttnn.deallocate"(%3) <{force = false}> : (tensor<100x1xf32, #ttnn_layout5>) -> ()
        %5 = "ttnn.subtract"(%1, %4) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<100x70xbf16, #ttnn_layout3>, tensor<100x1xbf16, #ttnn_layout6>) -> tensor<100x70xbf16, #ttnn_layout3>
        "ttnn.deallocate"(%4) <{force = false}> : (tensor<100x1xbf16, #ttnn_layout6>) -> ()
        "ttnn.deallocate"(%1) <{force = false}> : (tensor<100x70xbf16, #ttnn_layout3>) -> ()
        %6 = "ttnn.multiply"(%5, %5) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<100x70xbf16, #ttnn_layout3>, tensor<100x70xbf16, #ttnn_layout3>) -> tensor<100x70xbf16, #ttnn_layout3>
        %7 = "ttnn.typecast"(%6) : (tensor<100x70xbf16, #ttnn_layout3>) -> tensor<100x70xf32, #ttnn_layout4>
        "ttnn.deallocate"(%6) <{force = false}> : (tensor<100x70xbf16, #ttnn_layout3>) -> ()
        %8 = "ttnn.mean"(%7) <{compute_config = #ttnn.device_compute_kernel_config<math_fidelity = hifi4, fp32_dest_acc_en = true>, dim_arg = [1 : i32], keep_dim = true}> : (tensor<100x70xf32, #ttnn_layout4>) -> tensor<100x1xf32, #ttnn_layout5>
        "ttnn.deallocate"(%7) <{force = false}> : (tensor<100x70xf32, #ttnn_layout4>) -> ()
        %9 = "ttnn.typecast"(%8) : (tensor<100x1xf32, #ttnn_layout5>) -> tensor<100x1xbf16, #ttnn_layout6>
        "ttnn.deallocate"(%8) <{force = false}> : (tensor<100x1xf32, #ttnn_layout5>) -> ()
        %10 = "ttnn.add"(%9, %0) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<100x1xbf16, #ttnn_layout6>, tensor<1x1xbf16, #ttnn_layout>) -> tensor<100x1xbf16, #ttnn_layout6>
        "ttnn.deallocate"(%9) <{force = false}> : (tensor<100x1xbf16, #ttnn_layout6>) -> ()
        "ttnn.deallocate"(%0) <{force = false}> : (tensor<1x1xbf16, #ttnn_layout>) -> ()
        %11 = "ttnn.multiply"(%5, %10) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = [#ttnn.unary_with_param<op_type = rsqrt>]}> : (tensor<100x70xbf16, #ttnn_layout3>, tensor<100x1xbf16, #ttnn_layout6>) -> tensor<100x70xbf16, #ttnn_layout3>
        "ttnn.deallocate"(%10) <{force = false}> : (tensor<100x1xbf16, #ttnn_layout6>) -> ()
        "ttnn.deallocate"(%5) <{force = false}> : (tensor<100x70xbf16, #ttnn_layout3>) -> ()
        %12 = "ttnn.to_layout"(%arg1) : (tensor<70xbf16, #ttnn_layout2>) -> tensor<70xbf16, #ttnn_layout7>
        "ttnn.deallocate"(%arg1) <{force = false}> : (tensor<70xbf16, #ttnn_layout2>) -> ()
        %13 = "ttnn.reshape"(%12) <{shape = [1 : i32, 70 : i32]}> : (tensor<70xbf16, #ttnn_layout7>) -> tensor<1x70xbf16, #ttnn_layout8>
        "ttnn.deallocate"(%12) <{force = false}> : (tensor<70xbf16, #ttnn_layout7>) -> ()
        %14 = "ttnn.multiply"(%11, %13) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<100x70xbf16, #ttnn_layout3>, tensor<1x70xbf16, #ttnn_layout8>) -> tensor<100x70xbf16, #ttnn_layout3>
        "ttnn.deallocate"(%13) <{force = false}> : (tensor<1x70xbf16, #ttnn_layout8>) -> ()
        "ttnn.deallocate"(%11) <{force = false}> : (tensor<100x70xbf16, #ttnn_layout3>) -> ()
        %15 = "ttnn.to_layout"(%arg2) : (tensor<70xbf16, #ttnn_layout2>) -> tensor<70xbf16, #ttnn_layout7>
        "ttnn.deallocate"(%arg2) <{force = false}> : (tensor<70xbf16, #ttnn_layout2>) -> ()
        %16 = "ttnn.reshape"(%15) <{shape = [1 : i32, 70 : i32]}> : (tensor<70xbf16, #ttnn_layout7>) -> tensor<1x70xbf16, #ttnn_layout8>
        "ttnn.deallocate"(%15) <{force = false}> : (tensor<70xbf16, #ttnn_layout7>) -> ()
        %17 = "ttnn.add"(%14, %16) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<100x70xbf16, #ttnn_layout3>, tensor<1x70xbf16, #ttnn_layout8>) -> tensor<100x70xbf16, #ttnn_layout3>
        "ttnn.deallocate"(%16) <{force = false}> : (tensor<1x70xbf16, #ttnn_layout8>) -> ()
        "ttnn.deallocate"(%14) <{force = false}> : (tensor<100x70xbf16, #ttnn_layout3>) -> ()
        return %17 : tensor<100x70xbf16, #ttnn_layout3>
      }
    }
  }
}
