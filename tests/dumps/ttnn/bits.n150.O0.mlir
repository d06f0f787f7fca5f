#dram = #ttnn.buffer_type<dram>
#ttnn_layout = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<1x1x!ttcore.tile<32x32, si32>, #dram>, <interleaved>>
#ttnn_layout1 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<1x1x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout2 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<13x35xf32, #dram>, <interleaved>>
#ttnn_layout3 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<13x35xsi32, #dram>, <interleaved>>
#ttnn_layout4 = #ttnn.ttnn_layout<(d0) -> (0, d0), <1x1>, memref<1x1x!ttcore.tile<32x32, si32>, #dram>, <interleaved>>
#ttnn_layout5 = #ttnn.ttnn_layout<(d0) -> (0, d0), <1x1>, memref<1x2x!ttcore.tile<32x32, si32>, #dram>, <interleaved>>
#ttnn_layout6 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<1x2x!ttcore.tile<32x32, si32>, #dram>, <interleaved>>
#ttnn_layout7 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<1x2x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout8 = #ttnn.ttnn_layout<(d0) -> (0, d0), <1x1>, memref<1x1x!ttcore.tile<32x32, bf16>, #dram>, <interleaved>>
#ttnn_layout9 = #ttnn.ttnn_layout<(d0) -> (0, d0), <1x1>, memref<1x2x!ttcore.tile<32x32, bf16>, #dram>, <interleaved>>
#ttnn_layout10 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<1x2x!ttcore.tile<32x32, bf16>, #dram>, <interleaved>>
module @jit_bits attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32, ttcore.meshes = #ttcore.meshes<[<"mesh" = 1x1>]>} {
  ttcore.device_module {
    builtin.module @jit_bits attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32, ttcore.meshes = #ttcore.meshes<[<"mesh" = 1x1>]>, ttcore.system_desc = #system_desc, ttnn.l1_const_eval_usage = 1024 : ui64} {
      func.func private @main_const_eval_0() -> tensor<1x1xsi32, #ttnn_layout> attributes {tt.function_type = "const_eval"} {
        %0 = "ttnn.get_device"() <{mesh_offset = #ttnn<mesh_offset 0x0>, mesh_shape = #ttnn<mesh_shape 1x1>}> : () -> !ttnn.device
        %1 = "ttnn.full"(%0) <{fill_value = 2 : i32, shape = #ttnn.shape<1x1>}> : (!ttnn.device) -> tensor<1x1xsi32, #ttnn_layout>
        return %1 : tensor<1x1xsi32, #ttnn_layout>
      }
      func.func private @main_const_eval_1() -> tensor<1x1xf32, #ttnn_layout1> attributes {tt.function_type = "const_eval"} {
        %0 = "ttnn.get_device"() <{mesh_offset = #ttnn<mesh_offset 0x0>, mesh_shape = #ttnn<mesh_shape 1x1>}> : () -> !ttnn.device
        %1 = "ttnn.full"(%0) <{fill_value = -2.000000e+00 : f32, shape = #ttnn.shape<1x1>}> : (!ttnn.device) -> tensor<1x1xf32, #ttnn_layout1>
        return %1 : tensor<1x1xf32, #ttnn_layout1>
      }
      func.func private @main_const_eval_2() -> tensor<1x1xf32, #ttnn_layout1> attributes {tt.function_type = "const_eval"} {
        %0 = "ttnn.get_device"() <{mesh_offset = #ttnn<mesh_offset 0x0>, mesh_shape = #ttnn<mesh_shape 1x1>}> : () -> !ttnn.device
        %1 = "ttnn.zeros"(%0) <{shape = #ttnn.shape<1x1>}> : (!ttnn.device) -> tensor<1x1xf32, #ttnn_layout1>
        return %1 : tensor<1x1xf32, #ttnn_layout1>
      }
      func.func private @main_const_eval_3() -> tensor<1x1xf32, #ttnn_layout1> attributes {tt.function_type = "const_eval"} {
        %0 = "ttnn.get_device"() <{mesh_offset = #ttnn<mesh_offset 0x0>, mesh_shape = #ttnn<mesh_shape 1x1>}> : () -> !ttnn.device
        %1 = "ttnn.full"(%0) <{fill_value = 5.000000e-01 : f32, shape = #ttnn.shape<1x1>}> : (!ttnn.device) -> tensor<1x1xf32, #ttnn_layout1>
        return %1 : tensor<1x1xf32, #ttnn_layout1>
      }
      func.func public @main(%arg0: tensor<13x35xf32, #ttnn_layout2> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<13x35xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, %arg1: tensor<13x35xsi32, #ttnn_layout3> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<13x35xi32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}) -> (tensor<13xsi32, #ttnn_layout4> {jax.result_info = "result[0]", ttcore.local_shape = #ttcore<local_shape local_shape = tensor<13xi32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, tensor<35xsi32, #ttnn_layout5> {jax.result_info = "result[1]", ttcore.local_shape = #ttcore<local_shape local_shape = tensor<35xi32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, tensor<13x35xsi32, #ttnn_layout6> {jax.result_info = "result[2]", ttcore.local_shape = #ttcore<local_shape local_shape = tensor<13x35xi32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, tensor<13x35xf32, #ttnn_layout7> {jax.result_info = "result[3]", ttcore.local_shape = #ttcore<local_shape local_shape = tensor<13x35xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, tensor<13xbf16, #ttnn_layout8> {jax.result_info = "result[4]", ttcore.local_shape = #ttcore<local_shape local_shape = tensor<13xi1>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, tensor<35xbf16, #ttnn_layout9> {jax.result_info = "result[5]", ttcore.local_shape = #ttcore<local_shape local_shape = tensor<35xi1>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, tensor<13x35xbf16, #ttnn_layout10> {jax.result_info = "result[6]", ttcore.local_shape = #ttcore<local_shape local_shape = tensor<13x35xi1>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, tensor<13x35xf32, #ttnn_layout7> {jax.result_info = "result[7]", ttcore.local_shape = #ttcore<local_shape local_shape = tensor<13x35xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, tensor<13x35xf32, #ttnn_layout7> {jax.result_info = "result[8]", ttcore.local_shape = #ttcore<local_shape local_shape = tensor<13x35xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}) attributes {tt.function_type = "forward_device"} {
        %0 = ttcore.load_cached(@main_const_eval_0, []) : () -> tensor<1x1xsi32, #ttnn_layout>
        %1 = ttcore.load_cached(@main_const_eval_2, []) : () -> tensor<1x1xf32, #ttnn_layout1>
        %2 = ttcore.load_cached(@main_const_eval_1, []) : () -> tensor<1x1xf32, #ttnn_layout1>
        %3 = ttcore.load_cached(@main_const_eval_3, []) : () -> tensor<1x1xf32, #ttnn_layout1>
        %4 = "ttnn.to_layout"(%arg1) : (tensor<13x35xsi32, #ttnn_layout3>) -> tensor<13x35xsi32, #ttnn_layout6>
        "ttnn.deallocate"(%arg1) <{force = false}> : (tensor<13x35xsi32, #ttnn_layout3>) -> ()
        %5 = "ttnn.reduce_bitwise_or"(%4) <{compute_config = #ttnn.device_compute_kernel_config<math_fidelity = hifi4, fp32_dest_acc_en = true>, dim_arg = [1 : i32], keep_dim = false}> : (tensor<13x35xsi32, #ttnn_layout6>) -> tensor<13xsi32, #ttnn_layout4>
        %6 = "ttnn.reduce_bitwise_and"(%4) <{compute_config = #ttnn.device_compute_kernel_config<math_fidelity = hifi4, fp32_dest_acc_en = true>, dim_arg = [0 : i32], keep_dim = false}> : (tensor<13x35xsi32, #ttnn_layout6>) -> tensor<35xsi32, #ttnn_layout5>
        %7 = "ttnn.to_layout"(%arg0) : (tensor<13x35xf32, #ttnn_layout2>) -> tensor<13x35xf32, #ttnn_layout7>
        "ttnn.deallocate"(%arg0) <{force = false}> : (tensor<13x35xf32, #ttnn_layout2>) -> ()
        %8 = "ttnn.bitcast_convert"(%7) : (tensor<13x35xf32, #ttnn_layout7>) -> tensor<13x35xsi32, #ttnn_layout6>
        %9 = "ttnn.reduce_precision"(%7) <{exponent_bits = 8 : si32, mantissa_bits = 7 : si32}> : (tensor<13x35xf32, #ttnn_layout7>) -> tensor<13x35xf32, #ttnn_layout7>
        %10 = "ttnn.gt"(%7, %3) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<13x35xf32, #ttnn_layout7>, tensor<1x1xf32, #ttnn_layout1>) -> tensor<13x35xbf16, #ttnn_layout10>
        "ttnn.deallocate"(%3) <{force = false}> : (tensor<1x1xf32, #ttnn_layout1>) -> ()
        %11 = "ttnn.sum"(%10) <{compute_config = #ttnn.device_compute_kernel_config<math_fidelity = hifi4, fp32_dest_acc_en = true>, dim_arg = [1 : i32], keep_dim = false}> : (tensor<13x35xbf16, #ttnn_layout10>) -> tensor<13xbf16, #ttnn_layout8>
        "ttnn.deallocate"(%10) <{force = false}> : (tensor<13x35xbf16, #ttnn_layout10>) -> ()
        %12 = "ttnn.gt"(%7, %2) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<13x35xf32, #ttnn_layout7>, tensor<1x1xf32, #ttnn_layout1>) -> tensor<13x35xbf16, #ttnn_layout10>
        "ttnn.deallocate"(%2) <{force = false}> : (tensor<1x1xf32, #ttnn_layout1>) -> ()
        %13 = "ttnn.min"(%12) <{compute_config = #ttnn.device_compute_kernel_config<math_fidelity = hifi4, fp32_dest_acc_en = true>, dim_arg = [0 : i32], keep_dim = false}> : (tensor<13x35xbf16, #ttnn_layout10>) -> tensor<35xbf16, #ttnn_layout9>
        "ttnn.deallocate"(%12) <{force = false}> : (tensor<13x35xbf16, #ttnn_layout10>) -> ()
        %14 = "ttnn.gt"(%7, %1) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<13x35xf32, #ttnn_layout7>, tensor<1x1xf32, #ttnn_layout1>) -> tensor<13x35xbf16, #ttnn_layout10>
        "ttnn.deallocate"(%1) <{force = false}> : (tensor<1x1xf32, #ttnn_layout1>) -> ()
        %15 = "ttnn.gt"(%4, %0) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<13x35xsi32, #ttnn_layout6>, tensor<1x1xsi32, #ttnn_layout>) -> tensor<13x35xbf16, #ttnn_layout10>
        "ttnn.deallocate"(%4) <{force = false}> : (tensor<13x35xsi32, #ttnn_layout6>) -> ()
        "ttnn.deallocate"(%0) <{force = false}> : (tensor<1x1xsi32, #ttnn_layout>) -> ()
        %16 = "ttnn.logical_or"(%14, %15) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = [#ttnn.unary_with_param<op_type = logical_not_unary>]}> : (tensor<13x35xbf16, #ttnn_layout10>, tensor<13x35xbf16, #ttnn_layout10>) -> tensor<13x35xbf16, #ttnn_layout10>
        "ttnn.deallocate"(%15) <{force = false}> : (tensor<13x35xbf16, #ttnn_layout10>) -> ()
        "ttnn.deallocate"(%14) <{force = false}> : (tensor<13x35xbf16, #ttnn_layout10>) -> ()
        %17 = "ttnn.cumulative"(%7) <{dim = 1 : si32, reduction = #ttcore.reduce_type<max>, reverse = false}> : (tensor<13x35xf32, #ttnn_layout7>) -> tensor<13x35xf32, #ttnn_layout7>
        %18 = "ttnn.cumulative"(%7) <{dim = 1 : si32, reduction = #ttcore.reduce_type<logsumexp>, reverse = false}> : (tensor<13x35xf32, #ttnn_layout7>) -> tensor<13x35xf32, #ttnn_layout7>
        "ttnn.deallocate"(%7) <{force = false}> : (tensor<13x35xf32, #ttnn_layout7>) -> ()
        return %5, %6, %8, %9, %11, %13, %16, %17, %18 : tensor<13xsi32, #ttnn_layout4>, tensor<35xsi32, #ttnn_layout5>, tensor<13x35xsi32, #ttnn_layout6>, tensor<13x35xf32, #ttnn_layout7>, tensor<13xbf16, #ttnn_layout8>, tensor<35xbf16, #ttnn_layout9>, tensor<13x35xbf16, #ttnn_layout10>, tensor<13x35xf32, #ttnn_layout7>, tensor<13x35xf32, #ttnn_layout7>
      }
    }
  }
}
