#dram = #ttnn.buffer_type<dram>
#ttnn_layout = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<1x1x!ttcore.tile<32x32, si32>, #dram>, <interleaved>>
#ttnn_layout1 = #ttnn.ttnn_layout<() -> (0, 0), <1x1>, memref<1x1x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout2 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<1x2x!ttcore.tile<32x32, si32>, #dram>, <interleaved>>
#ttnn_layout3 = #ttnn.ttnn_layout<(d0) -> (0, d0), <1x1>, memref<1x2x!ttcore.tile<32x32, si32>, #dram>, <interleaved>>
#ttnn_layout4 = #ttnn.ttnn_layout<(d0) -> (0, d0), <1x1>, memref<1x1x!ttcore.tile<32x32, si32>, #dram>, <interleaved>>
#ttnn_layout5 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<1x1x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout6 = #ttnn.ttnn_layout<(d0) -> (0, d0), <1x1>, memref<1x4x!ttcore.tile<32x32, si32>, #dram>, <interleaved>>
#ttnn_layout7 = #ttnn.ttnn_layout<(d0) -> (0, d0), <1x1>, memref<1x3x!ttcore.tile<32x32, si32>, #dram>, <interleaved>>
#ttnn_layout8 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<1x3x!ttcore.tile<32x32, si32>, #dram>, <interleaved>>
#ttnn_layout9 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<4x3x!ttcore.tile<32x32, si32>, #dram>, <interleaved>>
#ttnn_layout10 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<100x70xsi32, #dram>, <interleaved>>
#ttnn_layout11 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<100x35xsi32, #dram>, <interleaved>>
#ttnn_layout12 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<4x2x!ttcore.tile<32x32, si32>, #dram>, <interleaved>>
#ttnn_layout13 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<4x1x!ttcore.tile<32x32, si32>, #dram>, <interleaved>>
#ttnn_layout14 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<100x35xf32, #dram>, <interleaved>>
#ttnn_layout15 = #ttnn.ttnn_layout<(d0) -> (0, d0), <1x1>, memref<1x2x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout16 = #ttnn.ttnn_layout<(d0) -> (0, d0), <1x1>, memref<1x4x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout17 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<4x2x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout18 = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 32 + d1 * 32 + d2, d3), <1x1>, memref<1x4x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout19 = #ttnn.ttnn_layout<(d0) -> (0, d0), <1x1>, memref<1x100xui32, #dram>, <interleaved>>
#ttnn_layout20 = #ttnn.ttnn_layout<(d0) -> (0, d0), <1x1>, memref<1x4x!ttcore.tile<32x32, u32>, #dram>, <interleaved>>
#ttnn_layout21 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<4x2x!ttcore.tile<32x32, bf16>, #dram>, <interleaved>>
#ttnn_layout22 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<4x1x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout23 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<100x2xf32, #dram>, <interleaved>>
#ttnn_layout24 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<100x1xui32, #dram>, <interleaved>>
#ttnn_layout25 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<4x1x!ttcore.tile<32x32, u32>, #dram>, <interleaved>>
#ttnn_layout26 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<4x1x!ttcore.tile<32x32, bf16>, #dram>, <interleaved>>
#ttnn_layout27 = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 32 + d1 * 32 + d2, d3), <1x1>, memref<1x1x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
module @jit_reductions attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32, ttcore.meshes = #ttcore.meshes<[<"mesh" = 1x2>]>} {
  ttcore.device_module {
    builtin.module @jit_reductions attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32, ttcore.meshes = #ttcore.meshes<[<"mesh" = 1x2>]>, ttcore.system_desc = #system_desc, ttnn.l1_const_eval_usage = 1024 : ui64} {
      func.func private @main_const_eval_0() -> tensor<1x1xsi32, #ttnn_layout> attributes {tt.function_type = "const_eval"} {
        %0 = "ttnn.get_device"() <{mesh_offset = #ttnn<mesh_offset 0x0>, mesh_shape = #ttnn<mesh_shape 1x2>}> : () -> !ttnn.device
        %1 = "ttnn.full"(%0) <{fill_value = 0 : i32, shape = #ttnn.shape<1x1>}> : (!ttnn.device) -> tensor<1x1xsi32, #ttnn_layout>
        return %1 : tensor<1x1xsi32, #ttnn_layout>
      }
      func.func private @main_const_eval_1() -> tensor<f32, #ttnn_layout1> attributes {tt.function_type = "const_eval"} {
        %0 = "ttnn.get_device"() <{mesh_offset = #ttnn<mesh_offset 0x0>, mesh_shape = #ttnn<mesh_shape 1x2>}> : () -> !ttnn.device
        %1 = "ttnn.full"(%0) <{fill_value = 7.000000e+03 : f32, shape = #ttnn.shape<>}> : (!ttnn.device) -> tensor<f32, #ttnn_layout1>
        return %1 : tensor<f32, #ttnn_layout1>
      }
      func.func private @main_const_eval_2() -> tensor<1x35xsi32, #ttnn_layout2> attributes {tt.function_type = "const_eval"} {
        %0 = "ttnn.get_device"() <{mesh_offset = #ttnn<mesh_offset 0x0>, mesh_shape = #ttnn<mesh_shape 1x2>}> : () -> !ttnn.device
        %1 = "ttnn.arange"(%0) <{end = 35 : si64, start = 0 : si64, step = 1 : si64}> : (!ttnn.device) -> tensor<35xsi32, #ttnn_layout3>
        %2 = "ttnn.reshape"(%1) <{shape = [1 : i32, 35 : i32]}> : (tensor<35xsi32, #ttnn_layout3>) -> tensor<1x35xsi32, #ttnn_layout2>
        "ttnn.deallocate"(%1) <{force = false}> : (tensor<35xsi32, #ttnn_layout3>) -> ()
        return %2 : tensor<1x35xsi32, #ttnn_layout2>
      }
      func.func private @main_const_eval_3() -> tensor<1x2xsi32, #ttnn_layout> attributes {tt.function_type = "const_eval"} {
        %0 = "ttnn.get_device"() <{mesh_offset = #ttnn<mesh_offset 0x0>, mesh_shape = #ttnn<mesh_shape 1x2>}> : () -> !ttnn.device
        %1 = "ttnn.arange"(%0) <{end = 2 : si64, start = 0 : si64, step = 1 : si64}> : (!ttnn.device) -> tensor<2xsi32, #ttnn_layout4>
        %2 = "ttnn.reshape"(%1) <{shape = [1 : i32, 2 : i32]}> : (tensor<2xsi32, #ttnn_layout4>) -> tensor<1x2xsi32, #ttnn_layout>
        "ttnn.deallocate"(%1) <{force = false}> : (tensor<2xsi32, #ttnn_layout4>) -> ()
        return %2 : tensor<1x2xsi32, #ttnn_layout>
      }
      func.func private @main_const_eval_4() -> tensor<1x1xf32, #ttnn_layout5> attributes {tt.function_type = "const_eval"} {
        %0 = "ttnn.get_device"() <{mesh_offset = #ttnn<mesh_offset 0x0>, mesh_shape = #ttnn<mesh_shape 1x2>}> : () -> !ttnn.device
        %1 = "ttnn.full"(%0) <{fill_value = 0.000000e+00 : f32, shape = #ttnn.shape<1x1>}> : (!ttnn.device) -> tensor<1x1xf32, #ttnn_layout5>
        return %1 : tensor<1x1xf32, #ttnn_layout5>
      }
      func.func private @main_const_eval_5() -> tensor<100xsi32, #ttnn_layout6> attributes {tt.function_type = "const_eval"} {
        %0 = "ttnn.get_device"() <{mesh_offset = #ttnn<mesh_offset 0x0>, mesh_shape = #ttnn<mesh_shape 1x2>}> : () -> !ttnn.device
        %1 = "ttnn.arange"(%0) <{end = 70 : si64, start = 0 : si64, step = 1 : si64}> : (!ttnn.device) -> tensor<70xsi32, #ttnn_layout7>
        %2 = "ttnn.reshape"(%1) <{shape = [1 : i32, 70 : i32]}> : (tensor<70xsi32, #ttnn_layout7>) -> tensor<1x70xsi32, #ttnn_layout8>
        "ttnn.deallocate"(%1) <{force = false}> : (tensor<70xsi32, #ttnn_layout7>) -> ()
        %3 = "ttnn.repeat"(%2) <{repeat_dims = #ttnn.shape<100x1>}> : (tensor<1x70xsi32, #ttnn_layout8>) -> tensor<100x70xsi32, #ttnn_layout9>
        "ttnn.deallocate"(%2) <{force = false}> : (tensor<1x70xsi32, #ttnn_layout8>) -> ()
        %4 = "ttnn.to_layout"(%3) : (tensor<100x70xsi32, #ttnn_layout9>) -> tensor<100x70xsi32, #ttnn_layout10>
        "ttnn.deallocate"(%3) <{force = false}> : (tensor<100x70xsi32, #ttnn_layout9>) -> ()
        %5 = "ttnn.mesh_partition"(%4) <{cluster_axis = 1 : ui32, dim = 1 : si32}> : (tensor<100x70xsi32, #ttnn_layout10>) -> tensor<100x35xsi32, #ttnn_layout11>
        "ttnn.deallocate"(%4) <{force = false}> : (tensor<100x70xsi32, #ttnn_layout10>) -> ()
        %6 = "ttnn.to_layout"(%5) : (tensor<100x35xsi32, #ttnn_layout11>) -> tensor<100x35xsi32, #ttnn_layout12>
        "ttnn.deallocate"(%5) <{force = false}> : (tensor<100x35xsi32, #ttnn_layout11>) -> ()
        %7 = "ttnn.slice_static"(%6) <{begins = [0 : i32, 0 : i32], ends = [100 : i32, 1 : i32], step = [1 : i32, 1 : i32]}> : (tensor<100x35xsi32, #ttnn_layout12>) -> tensor<100x1xsi32, #ttnn_layout13>
        "ttnn.deallocate"(%6) <{force = false}> : (tensor<100x35xsi32, #ttnn_layout12>) -> ()
        %8 = "ttnn.reshape"(%7) <{shape = [100 : i32]}> : (tensor<100x1xsi32, #ttnn_layout13>) -> tensor<100xsi32, #ttnn_layout6>
        "ttnn.deallocate"(%7) <{force = false}> : (tensor<100x1xsi32, #ttnn_layout13>) -> ()
        return %8 : tensor<100xsi32, #ttnn_layout6>
      }
      func.func public @main(%arg0: tensor<100x35xf32, #ttnn_layout14> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<100x35xf32>>, ttcore.shard_status = #ttcore.shard_status<presharded>}) -> (tensor<35xf32, #ttnn_layout15> {jax.result_info = "result[0]", ttcore.local_shape = #ttcore<local_shape local_shape = tensor<35xf32>>, ttcore.shard_status = #ttcore.shard_status<presharded>}, tensor<100xf32, #ttnn_layout16> {jax.result_info = "result[1]", ttcore.local_shape = #ttcore<local_shape local_shape = tensor<100xf32>>, ttcore.shard_status = #ttcore.shard_status<presharded>}, tensor<100xsi32, #ttnn_layout6> {jax.result_info = "result[2]", ttcore.local_shape = #ttcore<local_shape local_shape = tensor<100xi32>>, ttcore.shard_status = #ttcore.shard_status<presharded>}, tensor<f32, #ttnn_layout1> {jax.result_info = "result[3]", ttcore.local_shape = #ttcore<local_shape local_shape = tensor<f32>>, ttcore.shard_status = #ttcore.shard_status<presharded>}) attributes {tt.function_type = "forward_device"} {
        %0 = ttcore.load_cached(@main_const_eval_0, []) : () -> tensor<1x1xsi32, #ttnn_layout>
        %1 = ttcore.load_cached(@main_const_eval_1, []) : () -> tensor<f32, #ttnn_layout1>
        %2 = ttcore.load_cached(@main_const_eval_2, []) : () -> tensor<1x35xsi32, #ttnn_layout2>
        %3 = ttcore.load_cached(@main_const_eval_5, []) : () -> tensor<100xsi32, #ttnn_layout6>
        %4 = ttcore.load_cached(@main_const_eval_4, []) : () -> tensor<1x1xf32, #ttnn_layout5>
        %5 = ttcore.load_cached(@main_const_eval_3, []) : () -> tensor<1x2xsi32, #ttnn_layout>
        %6 = "ttnn.to_layout"(%arg0) : (tensor<100x35xf32, #ttnn_layout14>) -> tensor<100x35xf32, #ttnn_layout17>
        %7 = "ttnn.max"(%6) <{compute_config = #ttnn.device_compute_kernel_config<math_fidelity = hifi4, fp32_dest_acc_en = true>, dim_arg = [0 : i32], keep_dim = false}> : (tensor<100x35xf32, #ttnn_layout17>) -> tensor<35xf32, #ttnn_layout15>
        %8 = "ttnn.sum"(%6) <{compute_config = #ttnn.device_compute_kernel_config<math_fidelity = hifi4, fp32_dest_acc_en = true>, dim_arg = [1 : i32], keep_dim = false}> : (tensor<100x35xf32, #ttnn_layout17>) -> tensor<100xf32, #ttnn_layout16>
        %9 = "ttnn.reshape"(%8) <{shape = [1 : i32, 1 : i32, 1 : i32, 100 : i32]}> : (tensor<100xf32, #ttnn_layout16>) -> tensor<1x1x1x100xf32, #ttnn_layout18>
        "ttnn.deallocate"(%8) <{force = false}> : (tensor<100xf32, #ttnn_layout16>) -> ()
        %10 = "ttnn.all_reduce"(%9) <{cluster_axis = 1 : ui32, reduce_type = #ttcore.reduce_type<sum>}> : (tensor<1x1x1x100xf32, #ttnn_layout18>) -> tensor<1x1x1x100xf32, #ttnn_layout18>
        "ttnn.deallocate"(%9) <{force = false}> : (tensor<1x1x1x100xf32, #ttnn_layout18>) -> ()
        %11 = "ttnn.reshape"(%10) <{shape = [100 : i32]}> : (tensor<1x1x1x100xf32, #ttnn_layout18>) -> tensor<100xf32, #ttnn_layout16>
        "ttnn.deallocate"(%10) <{force = false}> : (tensor<1x1x1x100xf32, #ttnn_layout18>) -> ()
        %12 = "ttnn.argmax"(%arg0) <{dim = 1 : si32, keep_dim = false}> : (tensor<100x35xf32, #ttnn_layout14>) -> tensor<100xui32, #ttnn_layout19>
        "ttnn.deallocate"(%arg0) <{force = false}> : (tensor<100x35xf32, #ttnn_layout14>) -> ()
        %13 = "ttnn.to_layout"(%12) : (tensor<100xui32, #ttnn_layout19>) -> tensor<100xui32, #ttnn_layout20>
        "ttnn.deallocate"(%12) <{force = false}> : (tensor<100xui32, #ttnn_layout19>) -> ()
        %14 = "ttnn.typecast"(%13) : (tensor<100xui32, #ttnn_layout20>) -> tensor<100xsi32, #ttnn_layout6>
        "ttnn.deallocate"(%13) <{force = false}> : (tensor<100xui32, #ttnn_layout20>) -> ()
        %15 = "ttnn.reshape"(%14) <{shape = [100 : i32, 1 : i32]}> : (tensor<100xsi32, #ttnn_layout6>) -> tensor<100x1xsi32, #ttnn_layout13>
        %16 = "ttnn.eq"(%2, %15) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<1x35xsi32, #ttnn_layout2>, tensor<100x1xsi32, #ttnn_layout13>) -> tensor<100x35xbf16, #ttnn_layout21>
        "ttnn.deallocate"(%15) <{force = false}> : (tensor<100x1xsi32, #ttnn_layout13>) -> ()
        "ttnn.deallocate"(%2) <{force = false}> : (tensor<1x35xsi32, #ttnn_layout2>) -> ()
        %17 = "ttnn.where"(%16, %6, %4) : (tensor<100x35xbf16, #ttnn_layout21>, tensor<100x35xf32, #ttnn_layout17>, tensor<1x1xf32, #ttnn_layout5>) -> tensor<100x35xf32, #ttnn_layout17>
        "ttnn.deallocate"(%16) <{force = false}> : (tensor<100x35xbf16, #ttnn_layout21>) -> ()
        "ttnn.deallocate"(%4) <{force = false}> : (tensor<1x1xf32, #ttnn_layout5>) -> ()
        %18 = "ttnn.sum"(%17) <{compute_config = #ttnn.device_compute_kernel_config<math_fidelity = hifi4, fp32_dest_acc_en = true>, dim_arg = [1 : i32], keep_dim = true}> : (tensor<100x35xf32, #ttnn_layout17>) -> tensor<100x1xf32, #ttnn_layout22>
        "ttnn.deallocate"(%17) <{force = false}> : (tensor<100x35xf32, #ttnn_layout17>) -> ()
        %19 = "ttnn.add"(%14, %3) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<100xsi32, #ttnn_layout6>, tensor<100xsi32, #ttnn_layout6>) -> tensor<100xsi32, #ttnn_layout6>
        "ttnn.deallocate"(%14) <{force = false}> : (tensor<100xsi32, #ttnn_layout6>) -> ()
        "ttnn.deallocate"(%3) <{force = false}> : (tensor<100xsi32, #ttnn_layout6>) -> ()
        %20 = "ttnn.all_gather"(%18) <{all_gather_dim = 1 : si32, cluster_axis = 1 : ui32}> : (tensor<100x1xf32, #ttnn_layout22>) -> tensor<100x2xf32, #ttnn_layout22>
        "ttnn.deallocate"(%18) <{force = false}> : (tensor<100x1xf32, #ttnn_layout22>) -> ()
        %21 = "ttnn.to_layout"(%20) : (tensor<100x2xf32, #ttnn_layout22>) -> tensor<100x2xf32, #ttnn_layout23>
        "ttnn.deallocate"(%20) <{force = false}> : (tensor<100x2xf32, #ttnn_layout22>) -> ()
        %22 = "ttnn.argmax"(%21) <{dim = 1 : si32, keep_dim = true}> : (tensor<100x2xf32, #ttnn_layout23>) -> tensor<100x1xui32, #ttnn_layout24>
        "ttnn.deallocate"(%21) <{force = false}> : (tensor<100x2xf32, #ttnn_layout23>) -> ()
        %23 = "ttnn.to_layout"(%22) : (tensor<100x1xui32, #ttnn_layout24>) -> tensor<100x1xui32, #ttnn_layout25>
        "ttnn.deallocate"(%22) <{force = false}> : (tensor<100x1xui32, #ttnn_layout24>) -> ()
        %24 = "ttnn.typecast"(%23) : (tensor<100x1xui32, #ttnn_layout25>) -> tensor<100x1xsi32, #ttnn_layout13>
        "ttnn.deallocate"(%23) <{force = false}> : (tensor<100x1xui32, #ttnn_layout25>) -> ()
        %25 = "ttnn.reshape"(%19) <{shape = [100 : i32, 1 : i32]}> : (tensor<100xsi32, #ttnn_layout6>) -> tensor<100x1xsi32, #ttnn_layout13>
        "ttnn.deallocate"(%19) <{force = false}> : (tensor<100xsi32, #ttnn_layout6>) -> ()
        %26 = "ttnn.all_gather"(%25) <{all_gather_dim = 1 : si32, cluster_axis = 1 : ui32}> : (tensor<100x1xsi32, #ttnn_layout13>) -> tensor<100x2xsi32, #ttnn_layout13>
        "ttnn.deallocate"(%25) <{force = false}> : (tensor<100x1xsi32, #ttnn_layout13>) -> ()
        %27 = "ttnn.eq"(%5, %24) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<1x2xsi32, #ttnn_layout>, tensor<100x1xsi32, #ttnn_layout13>) -> tensor<100x2xbf16, #ttnn_layout26>
        "ttnn.deallocate"(%24) <{force = false}> : (tensor<100x1xsi32, #ttnn_layout13>) -> ()
        "ttnn.deallocate"(%5) <{force = false}> : (tensor<1x2xsi32, #ttnn_layout>) -> ()
        %28 = "ttnn.where"(%27, %26, %0) : (tensor<100x2xbf16, #ttnn_layout26>, tensor<100x2xsi32, #ttnn_layout13>, tensor<1x1xsi32, #ttnn_layout>) -> tensor<100x2xsi32, #ttnn_layout13>
        "ttnn.deallocate"(%27) <{force = false}> : (tensor<100x2xbf16, #ttnn_layout26>) -> ()
        "ttnn.deallocate"(%26) <{force = false}> : (tensor<100x2xsi32, #ttnn_layout13>) -> ()
        "ttnn.deallocate"(%0) <{force = false}> : (tensor<1x1xsi32, #ttnn_layout>) -> ()
        %29 = "ttnn.sum"(%28) <{compute_config = #ttnn.device_compute_kernel_config<math_fidelity = hifi4, fp32_dest_acc_en = true>, dim_arg = [1 : i32], keep_dim = false}> : (tensor<100x2xsi32, #ttnn_layout13>) -> tensor<100xsi32, #ttnn_layout6>
        "ttnn.deallocate"(%28) <{force = false}> : (tensor<100x2xsi32, #ttnn_layout13>) -> ()
        %30 = "ttnn.sum"(%6) <{compute_config = #ttnn.device_compute_kernel_config<math_fidelity = hifi4, fp32_dest_acc_en = true>, dim_arg = [0 : i32, 1 : i32], keep_dim = false}> : (tensor<100x35xf32, #ttnn_layout17>) -> tensor<f32, #ttnn_layout1>
        "ttnn.deallocate"(%6) <{force = false}> : (tensor<100x35xf32, #ttnn_layout17>) -> ()
        %31 = "ttnn.reshape"(%30) <{shape = [1 : i32, 1 : i32, 1 : i32, 1 : i32]}> : (tensor<f32, #ttnn_layout1>) -> tensor<1x1x1x1xf32, #ttnn_layout27>
        "ttnn.deallocate"(%30) <{force = false}> : (tensor<f32, #ttnn_layout1>) -> ()
        %32 = "ttnn.all_reduce"(%31) <{cluster_axis = 1 : ui32, reduce_type = #ttcore.reduce_type<sum>}> : (tensor<1x1x1x1xf32, #ttnn_layout27>) -> tensor<1x1x1x1xf32, #ttnn_layout27>
        "ttnn.deallocate"(%31) <{force = false}> : (tensor<1x1x1x1xf32, #ttnn_layout27>) -> ()
        %33 = "ttnn.reshape"(%32) <{shape = []}> : (tensor<1x1x1x1xf32, #ttnn_layout27>) -> tensor<f32, #ttnn_layout1>
        "ttnn.deallocate"(%32) <{force = false}> : (tensor<1x1x1x1xf32, #ttnn_layout27>) -> ()
        %34 = "ttnn.divide"(%33, %1) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<f32, #ttnn_layout1>, tensor<f32, #ttnn_layout1>) -> tensor<f32, #ttnn_layout1>
        "ttnn.deallocate"(%33) <{force = false}> : (tensor<f32, #ttnn_layout1>) -> ()
        "ttnn.deallocate"(%1) <{force = false}> : (tensor<f32, #ttnn_layout1>) -> ()
        return %7, %11, %29, %34 : tensor<35xf32, #ttnn_layout15>, tensor<100xf32, #ttnn_layout16>, tensor<100xsi32, #ttnn_layout6>, tensor<f32, #ttnn_layout1>
      }
    }
  }
}
