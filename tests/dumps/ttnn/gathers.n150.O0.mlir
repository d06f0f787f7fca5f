#dram = #ttnn.buffer_type<dram>
#ttnn_layout = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<1x1x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout1 = #ttnn.ttnn_layout<(d0, d1, d2) -> (d0 * 32 + d1, d2), <1x1>, memref<1x1x!ttcore.tile<32x32, si32>, #dram>, <interleaved>>
#ttnn_layout2 = #ttnn.ttnn_layout<(d0) -> (0, d0), <1x1>, memref<1x1x!ttcore.tile<32x32, si32>, #dram>, <interleaved>>
#ttnn_layout3 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<1x1x!ttcore.tile<32x32, si32>, #dram>, <interleaved>>
#ttnn_layout4 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<35x70xf32, #dram>, <interleaved>>
#ttnn_layout5 = #ttnn.ttnn_layout<(d0) -> (0, d0), <1x1>, memref<1x9xsi32, #dram>, <interleaved>>
#ttnn_layout6 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<1x3x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout7 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<2x1x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout8 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<2x3x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout9 = #ttnn.ttnn_layout<(d0) -> (0, d0), <1x1>, memref<1x1x!ttcore.tile<32x32, bf16>, #dram>, <interleaved>>
#ttnn_layout10 = #ttnn.ttnn_layout<(d0, d1, d2) -> (d0 * 35 + d1, d2), <1x1>, memref<35x70xf32, #dram>, <interleaved>>
#ttnn_layout11 = #ttnn.ttnn_layout<(d0, d1, d2) -> (d0 + d1, d2), <1x1>, memref<1x9xsi32, #dram>, <interleaved>>
#ttnn_layout12 = #ttnn.ttnn_layout<(d0, d1, d2) -> (d0 * 9 + d1, d2), <1x1>, memref<9x70xf32, #dram>, <interleaved>>
#ttnn_layout13 = #ttnn.ttnn_layout<(d0, d1, d2) -> (d0 * 32 + d1, d2), <1x1>, memref<1x3x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout14 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<1x1x!ttcore.tile<32x32, bf16>, #dram>, <interleaved>>
#ttnn_layout15 = #ttnn.ttnn_layout<(d0, d1, d2) -> (d0 + d1, d2), <1x1>, memref<35x70xf32, #dram>, <interleaved>>
#ttnn_layout16 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<35x9xf32, #dram>, <interleaved>>
#ttnn_layout17 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<2x3x!ttcore.tile<32x32, u16>, #dram>, <interleaved>>
#ttnn_layout18 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<2x3x!ttcore.tile<32x32, si32>, #dram>, <interleaved>>
#ttnn_layout19 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<2x3x!ttcore.tile<32x32, bf16>, #dram>, <interleaved>>
#ttnn_layout20 = #ttnn.ttnn_layout<(d0, d1, d2) -> (d0 * 96 + d1, d2), <1x1>, memref<105x1x!ttcore.tile<32x32, si32>, #dram>, <interleaved>>
#ttnn_layout21 = #ttnn.ttnn_layout<(d0, d1, d2) -> (d0 * 96 + d1, d2), <1x1>, memref<105x1x!ttcore.tile<32x32, bf16>, #dram>, <interleaved>>
#ttnn_layout22 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<35x70xsi32, #dram>, <interleaved>>
#ttnn_layout23 = #ttnn.ttnn_layout<(d0, d1, d2) -> (d0 + d1, d2), <1x1>, memref<35x70xsi32, #dram>, <interleaved>>
module @jit_gathers attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32, ttcore.meshes = #ttcore.meshes<[<"mesh" = 1x1>]>} {
  ttcore.device_module {
    builtin.module @jit_gathers attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32, ttcore.meshes = #ttcore.meshes<[<"mesh" = 1x1>]>, ttcore.system_desc = #system_desc, ttnn.l1_const_eval_usage = 1024 : ui64} {
      func.func private @main_const_eval_0() -> tensor<1x1xf32, #ttnn_layout> attributes {tt.function_type = "const_eval"} {
        %0 = "ttnn.get_device"() <{mesh_offset = #ttnn<mesh_offset 0x0>, mesh_shape = #ttnn<mesh_shape 1x1>}> : () -> !ttnn.device
        %1 = "ttnn.full"(%0) <{fill_value = 0x7FC00000 : f32, shape = #ttnn.shape<1x1>}> : (!ttnn.device) -> tensor<1x1xf32, #ttnn_layout>
        return %1 : tensor<1x1xf32, #ttnn_layout>
      }
      func.func private @main_const_eval_1() -> tensor<1x1x1xsi32, #ttnn_layout1> attributes {tt.function_type = "const_eval"} {
        %0 = "ttnn.get_device"() <{mesh_offset = #ttnn<mesh_offset 0x0>, mesh_shape = #ttnn<mesh_shape 1x1>}> : () -> !ttnn.device
        %1 = "ttnn.zeros"(%0) <{shape = #ttnn.shape<1x1x1>}> : (!ttnn.device) -> tensor<1x1x1xsi32, #ttnn_layout1>
        return %1 : tensor<1x1x1xsi32, #ttnn_layout1>
      }
      func.func private @main_const_eval_2() -> tensor<1xsi32, #ttnn_layout2> attributes {tt.function_type = "const_eval"} {
        %0 = "ttnn.get_device"() <{mesh_offset = #ttnn<mesh_offset 0x0>, mesh_shape = #ttnn<mesh_shape 1x1>}> : () -> !ttnn.device
        %1 = "ttnn.full"(%0) <{fill_value = 70 : i32, shape = #ttnn.shape<1>}> : (!ttnn.device) -> tensor<1xsi32, #ttnn_layout2>
        return %1 : tensor<1xsi32, #ttnn_layout2>
      }
      func.func private @main_const_eval_3() -> tensor<1x1xsi32, #ttnn_layout3> attributes {tt.function_type = "const_eval"} {
        %0 = "ttnn.get_device"() <{mesh_offset = #ttnn<mesh_offset 0x0>, mesh_shape = #ttnn<mesh_shape 1x1>}> : () -> !ttnn.device
        %1 = "ttnn.zeros"(%0) <{shape = #ttnn.shape<1x1>}> : (!ttnn.device) -> tensor<1x1xsi32, #ttnn_layout3>
        return %1 : tensor<1x1xsi32, #ttnn_layout3>
      }
      func.func private @main_const_eval_4() -> tensor<1xsi32, #ttnn_layout2> attributes {tt.function_type = "const_eval"} {
        %0 = "ttnn.get_device"() <{mesh_offset = #ttnn<mesh_offset 0x0>, mesh_shape = #ttnn<mesh_shape 1x1>}> : () -> !ttnn.device
        %1 = "ttnn.zeros"(%0) <{shape = #ttnn.shape<1>}> : (!ttnn.device) -> tensor<1xsi32, #ttnn_layout2>
        return %1 : tensor<1xsi32, #ttnn_layout2>
      }
      func.func private @main_const_eval_5() -> tensor<1x1xsi32, #ttnn_layout3> attributes {tt.function_type = "const_eval"} {
        %0 = "ttnn.get_device"() <{mesh_offset = #ttnn<mesh_offset 0x0>, mesh_shape = #ttnn<mesh_shape 1x1>}> : () -> !ttnn.device
        %1 = "ttnn.full"(%0) <{fill_value = 69 : i32, shape = #ttnn.shape<1x1>}> : (!ttnn.device) -> tensor<1x1xsi32, #ttnn_layout3>
        return %1 : tensor<1x1xsi32, #ttnn_layout3>
      }
      func.func private @main_const_eval_6() -> tensor<1x1x1xsi32, #ttnn_layout1> attributes {tt.function_type = "const_eval"} {
        %0 = "ttnn.get_device"() <{mesh_offset = #ttnn<mesh_offset 0x0>, mesh_shape = #ttnn<mesh_shape 1x1>}> : () -> !ttnn.device
        %1 = "ttnn.full"(%0) <{fill_value = 69 : i32, shape = #ttnn.shape<1x1x1>}> : (!ttnn.device) -> tensor<1x1x1xsi32, #ttnn_layout1>
        return %1 : tensor<1x1x1xsi32, #ttnn_layout1>
      }
      func.func private @main_const_eval_7() -> tensor<1x1xsi32, #ttnn_layout3> attributes {tt.function_type = "const_eval"} {
        %0 = "ttnn.get_device"() <{mesh_offset = #ttnn<mesh_offset 0x0>, mesh_shape = #ttnn<mesh_shape 1x1>}> : () -> !ttnn.device
        %1 = "ttnn.full"(%0) <{fill_value = 70 : i32, shape = #ttnn.shape<1x1>}> : (!ttnn.device) -> tensor<1x1xsi32, #ttnn_layout3>
        return %1 : tensor<1x1xsi32, #ttnn_layout3>
      }
      func.func private @main_const_eval_8() -> tensor<1xsi32, #ttnn_layout2> attributes {tt.function_type = "const_eval"} {
        %0 = "ttnn.get_device"() <{mesh_offset = #ttnn<mesh_offset 0x0>, mesh_shape = #ttnn<mesh_shape 1x1>}> : () -> !ttnn.device
        %1 = "ttnn.full"(%0) <{fill_value = 35 : i32, shape = #ttnn.shape<1>}> : (!ttnn.device) -> tensor<1xsi32, #ttnn_layout2>
        return %1 : tensor<1xsi32, #ttnn_layout2>
      }
      func.func public @main(%arg0: tensor<35x70xf32, #ttnn_layout4> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<35x70xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, %arg1: tensor<9xsi32, #ttnn_layout5> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<9xi32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}) -> (tensor<9x70xf32, #ttnn_layout6> {jax.result_info = "result[0]", ttcore.local_shape = #ttcore<local_shape local_shape = tensor<9x70xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, tensor<35x9xf32, #ttnn_layout7> {jax.result_info = "result[1]", ttcore.local_shape = #ttcore<local_shape local_shape = tensor<35x9xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, tensor<35x70xf32, #ttnn_layout8> {jax.result_info = "result[2]", ttcore.local_shape = #ttcore<local_shape local_shape = tensor<35x70xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}) attributes {tt.function_type = "forward_device"} {
        %0 = ttcore.load_cached(@main_const_eval_0, []) : () -> tensor<1x1xf32, #ttnn_layout>
        %1 = ttcore.load_cached(@main_const_eval_1, []) : () -> tensor<1x1x1xsi32, #ttnn_layout1>
        %2 = ttcore.load_cached(@main_const_eval_2, []) : () -> tensor<1xsi32, #ttnn_layout2>
        %3 = ttcore.load_cached(@main_const_eval_7, []) : () -> tensor<1x1xsi32, #ttnn_layout3>
        %4 = ttcore.load_cached(@main_const_eval_3, []) : () -> tensor<1x1xsi32, #ttnn_layout3>
        %5 = ttcore.load_cached(@main_const_eval_5, []) : () -> tensor<1x1xsi32, #ttnn_layout3>
        %6 = ttcore.load_cached(@main_const_eval_6, []) : () -> tensor<1x1x1xsi32, #ttnn_layout1>
        %7 = ttcore.load_cached(@main_const_eval_8, []) : () -> tensor<1xsi32, #ttnn_layout2>
        %8 = ttcore.load_cached(@main_const_eval_4, []) : () -> tensor<1xsi32, #ttnn_layout2>
        %9 = "ttnn.to_layout"(%arg1) : (tensor<9xsi32, #ttnn_layout5>) -> tensor<9xsi32, #ttnn_layout2>
        "ttnn.deallocate"(%arg1) <{force = false}> : (tensor<9xsi32, #ttnn_layout5>) -> ()
        %10 = "ttnn.gt"(%8, %9) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<1xsi32, #ttnn_layout2>, tensor<9xsi32, #ttnn_layout2>) -> tensor<9xbf16, #ttnn_layout9>
        "ttnn.deallocate"(%8) <{force = false}> : (tensor<1xsi32, #ttnn_layout2>) -> ()
        %11 = "ttnn.add"(%9, %7) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<9xsi32, #ttnn_layout2>, tensor<1xsi32, #ttnn_layout2>) -> tensor<9xsi32, #ttnn_layout2>
        "ttnn.deallocate"(%7) <{force = false}> : (tensor<1xsi32, #ttnn_layout2>) -> ()
        %12 = "ttnn.where"(%10, %11, %9) : (tensor<9xbf16, #ttnn_layout9>, tensor<9xsi32, #ttnn_layout2>, tensor<9xsi32, #ttnn_layout2>) -> tensor<9xsi32, #ttnn_layout2>
        "ttnn.deallocate"(%11) <{force = false}> : (tensor<9xsi32, #ttnn_layout2>) -> ()
        %13 = "ttnn.reshape"(%arg0) <{shape = [1 : i32, 35 : i32, 70 : i32]}> : (tensor<35x70xf32, #ttnn_layout4>) -> tensor<1x35x70xf32, #ttnn_layout10>
        %14 = "ttnn.to_layout"(%12) : (tensor<9xsi32, #ttnn_layout2>) -> tensor<9xsi32, #ttnn_layout5>
        "ttnn.deallocate"(%12) <{force = false}> : (tensor<9xsi32, #ttnn_layout2>) -> ()
        %15 = "ttnn.reshape"(%14) <{shape = [1 : i32, 1 : i32, 9 : i32]}> : (tensor<9xsi32, #ttnn_layout5>) -> tensor<1x1x9xsi32, #ttnn_layout11>
        "ttnn.deallocate"(%14) <{force = false}> : (tensor<9xsi32, #ttnn_layout5>) -> ()
        %16 = "ttnn.rows_gather"(%13, %15) <{column = false, fill_out_of_bounds = false, sizes = array<i64: 35>, windows = array<i64: 1>}> : (tensor<1x35x70xf32, #ttnn_layout10>, tensor<1x1x9xsi32, #ttnn_layout11>) -> tensor<1x9x70xf32, #ttnn_layout12>
        "ttnn.deallocate"(%15) <{force = false}> : (tensor<1x1x9xsi32, #ttnn_layout11>) -> ()
        "ttnn.deallocate"(%13) <{force = false}> : (tensor<1x35x70xf32, #ttnn_layout10>) -> ()
        %17 = "ttnn.to_layout"(%16) : (tensor<1x9x70xf32, #ttnn_layout12>) -> tensor<1x9x70xf32, #ttnn_layout13>
        "ttnn.deallocate"(%16) <{force = false}> : (tensor<1x9x70xf32, #ttnn_layout12>) -> ()
        %18 = "ttnn.reshape"(%17) <{shape = [9 : i32, 70 : i32]}> : (tensor<1x9x70xf32, #ttnn_layout13>) -> tensor<9x70xf32, #ttnn_layout6>
        "ttnn.deallocate"(%17) <{force = false}> : (tensor<1x9x70xf32, #ttnn_layout13>) -> ()
        %19 = "ttnn.add"(%9, %2) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<9xsi32, #ttnn_layout2>, tensor<1xsi32, #ttnn_layout2>) -> tensor<9xsi32, #ttnn_layout2>
        "ttnn.deallocate"(%2) <{force = false}> : (tensor<1xsi32, #ttnn_layout2>) -> ()
        %20 = "ttnn.where"(%10, %19, %9) : (tensor<9xbf16, #ttnn_layout9>, tensor<9xsi32, #ttnn_layout2>, tensor<9xsi32, #ttnn_layout2>) -> tensor<9xsi32, #ttnn_layout2>
        "ttnn.deallocate"(%19) <{force = false}> : (tensor<9xsi32, #ttnn_layout2>) -> ()
        "ttnn.deallocate"(%10) <{force = false}> : (tensor<9xbf16, #ttnn_layout9>) -> ()
        "ttnn.deallocate"(%9) <{force = false}> : (tensor<9xsi32, #ttnn_layout2>) -> ()
        %21 = "ttnn.reshape"(%20) <{shape = [9 : i32, 1 : i32]}> : (tensor<9xsi32, #ttnn_layout2>) -> tensor<9x1xsi32, #ttnn_layout3>
        %22 = "ttnn.ge"(%21, %4) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<9x1xsi32, #ttnn_layout3>, tensor<1x1xsi32, #ttnn_layout3>) -> tensor<9x1xbf16, #ttnn_layout14>
        %23 = "ttnn.ge"(%5, %21) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<1x1xsi32, #ttnn_layout3>, tensor<9x1xsi32, #ttnn_layout3>) -> tensor<9x1xbf16, #ttnn_layout14>
        "ttnn.deallocate"(%21) <{force = false}> : (tensor<9x1xsi32, #ttnn_layout3>) -> ()
        "ttnn.deallocate"(%5) <{force = false}> : (tensor<1x1xsi32, #ttnn_layout3>) -> ()
        %24 = "ttnn.logical_and"(%22, %23) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<9x1xbf16, #ttnn_layout14>, tensor<9x1xbf16, #ttnn_layout14>) -> tensor<9x1xbf16, #ttnn_layout14>
        "ttnn.deallocate"(%23) <{force = false}> : (tensor<9x1xbf16, #ttnn_layout14>) -> ()
        "ttnn.deallocate"(%22) <{force = false}> : (tensor<9x1xbf16, #ttnn_layout14>) -> ()
        %25 = "ttnn.min"(%24) <{compute_config = #ttnn.device_compute_kernel_config<math_fidelity = hifi4, fp32_dest_acc_en = true>, dim_arg = [1 : i32], keep_dim = false}> : (tensor<9x1xbf16, #ttnn_layout14>) -> tensor<9xbf16, #ttnn_layout9>
        "ttnn.deallocate"(%24) <{force = false}> : (tensor<9x1xbf16, #ttnn_layout14>) -> ()
        %26 = "ttnn.reshape"(%arg0) <{shape = [35 : i32, 1 : i32, 70 : i32]}> : (tensor<35x70xf32, #ttnn_layout4>) -> tensor<35x1x70xf32, #ttnn_layout15>
        %27 = "ttnn.to_layout"(%20) : (tensor<9xsi32, #ttnn_layout2>) -> tensor<9xsi32, #ttnn_layout5>
        "ttnn.deallocate"(%20) <{force = false}> : (tensor<9xsi32, #ttnn_layout2>) -> ()
        %28 = "ttnn.reshape"(%27) <{shape = [1 : i32, 1 : i32, 9 : i32]}> : (tensor<9xsi32, #ttnn_layout5>) -> tensor<1x1x9xsi32, #ttnn_layout11>
        "ttnn.deallocate"(%27) <{force = false}> : (tensor<9xsi32, #ttnn_layout5>) -> ()
        %29 = "ttnn.rows_gather"(%26, %28) <{column = true, fill_out_of_bounds = false, sizes = array<i64: 70>, windows = array<i64: 1>}> : (tensor<35x1x70xf32, #ttnn_layout15>, tensor<1x1x9xsi32, #ttnn_layout11>) -> tensor<35x9xf32, #ttnn_layout16>
        "ttnn.deallocate"(%28) <{force = false}> : (tensor<1x1x9xsi32, #ttnn_layout11>) -> ()
        %30 = "ttnn.reshape"(%25) <{shape = [1 : i32, 9 : i32]}> : (tensor<9xbf16, #ttnn_layout9>) -> tensor<1x9xbf16, #ttnn_layout14>
        "ttnn.deallocate"(%25) <{force = false}> : (tensor<9xbf16, #ttnn_layout9>) -> ()
        %31 = "ttnn.to_layout"(%29) : (tensor<35x9xf32, #ttnn_layout16>) -> tensor<35x9xf32, #ttnn_layout7>
        "ttnn.deallocate"(%29) <{force = false}> : (tensor<35x9xf32, #ttnn_layout16>) -> ()
        %32 = "ttnn.where"(%30, %31, %0) : (tensor<1x9xbf16, #ttnn_layout14>, tensor<35x9xf32, #ttnn_layout7>, tensor<1x1xf32, #ttnn_layout>) -> tensor<35x9xf32, #ttnn_layout7>
        "ttnn.deallocate"(%31) <{force = false}> : (tensor<35x9xf32, #ttnn_layout7>) -> ()
        "ttnn.deallocate"(%30) <{force = false}> : (tensor<1x9xbf16, #ttnn_layout14>) -> ()
        %33 = "ttnn.to_layout"(%arg0) : (tensor<35x70xf32, #ttnn_layout4>) -> tensor<35x70xf32, #ttnn_layout8>
        "ttnn.deallocate"(%arg0) <{force = false}> : (tensor<35x70xf32, #ttnn_layout4>) -> ()
        %values, %indices = "ttnn.sort"(%33) <{descending = false, dim = 1 : si8, stable = true}> : (tensor<35x70xf32, #ttnn_layout8>) -> (tensor<35x70xf32, #ttnn_layout8>, tensor<35x70xui16, #ttnn_layout17>)
        "ttnn.deallocate"(%values) <{force = false}> : (tensor<35x70xf32, #ttnn_layout8>) -> ()
        "ttnn.deallocate"(%33) <{force = false}> : (tensor<35x70xf32, #ttnn_layout8>) -> ()
        %34 = "ttnn.typecast"(%indices) : (tensor<35x70xui16, #ttnn_layout17>) -> tensor<35x70xsi32, #ttnn_layout18>
        "ttnn.deallocate"(%indices) <{force = false}> : (tensor<35x70xui16, #ttnn_layout17>) -> ()
        %35 = "ttnn.gt"(%4, %34) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<1x1xsi32, #ttnn_layout3>, tensor<35x70xsi32, #ttnn_layout18>) -> tensor<35x70xbf16, #ttnn_layout19>
        "ttnn.deallocate"(%4) <{force = false}> : (tensor<1x1xsi32, #ttnn_layout3>) -> ()
        %36 = "ttnn.add"(%34, %3) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<35x70xsi32, #ttnn_layout18>, tensor<1x1xsi32, #ttnn_layout3>) -> tensor<35x70xsi32, #ttnn_layout18>
        "ttnn.deallocate"(%3) <{force = false}> : (tensor<1x1xsi32, #ttnn_layout3>) -> ()
        %37 = "ttnn.where"(%35, %36, %34) : (tensor<35x70xbf16, #ttnn_layout19>, tensor<35x70xsi32, #ttnn_layout18>, tensor<35x70xsi32, #ttnn_layout18>) -> tensor<35x70xsi32, #ttnn_layout18>
        "ttnn.deallocate"(%36) <{force = false}> : (tensor<35x70xsi32, #ttnn_layout18>) -> ()
        "ttnn.deallocate"(%35) <{force = false}> : (tensor<35x70xbf16, #ttnn_layout19>) -> ()
        "ttnn.deallocate"(%34) <{force = false}> : (tensor<35x70xsi32, #ttnn_layout18>) -> ()
        %38 = "ttnn.reshape"(%37) <{shape = [35 : i32, 70 : i32, 1 : i32]}> : (tensor<35x70xsi32, #ttnn_layout18>) -> tensor<35x70x1xsi32, #ttnn_layout20>
        %39 = "ttnn.ge"(%38, %1) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<35x70x1xsi32, #ttnn_layout20>, tensor<1x1x1xsi32, #ttnn_layout1>) -> tensor<35x70x1xbf16, #ttnn_layout21>
        "ttnn.deallocate"(%1) <{force = false}> : (tensor<1x1x1xsi32, #ttnn_layout1>) -> ()
        %40 = "ttnn.ge"(%6, %38) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<1x1x1xsi32, #ttnn_layout1>, tensor<35x70x1xsi32, #ttnn_layout20>) -> tensor<35x70x1xbf16, #ttnn_layout21>
        "ttnn.deallocate"(%38) <{force = false}> : (tensor<35x70x1xsi32, #ttnn_layout20>) -> ()
        "ttnn.deallocate"(%6) <{force = false}> : (tensor<1x1x1xsi32, #ttnn_layout1>) -> ()
        %41 = "ttnn.logical_and"(%39, %40) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<35x70x1xbf16, #ttnn_layout21>, tensor<35x70x1xbf16, #ttnn_layout21>) -> tensor<35x70x1xbf16, #ttnn_layout21>
        "ttnn.deallocate"(%40) <{force = false}> : (tensor<35x70x1xbf16, #ttnn_layout21>) -> ()
        "ttnn.deallocate"(%39) <{force = false}> : (tensor<35x70x1xbf16, #ttnn_layout21>) -> ()
        %42 = "ttnn.min"(%41) <{compute_config = #ttnn.device_compute_kernel_config<math_fidelity = hifi4, fp32_dest_acc_en = true>, dim_arg = [2 : i32], keep_dim = false}> : (tensor<35x70x1xbf16, #ttnn_layout21>) -> tensor<35x70xbf16, #ttnn_layout19>
        "ttnn.deallocate"(%41) <{force = false}> : (tensor<35x70x1xbf16, #ttnn_layout21>) -> ()
        %43 = "ttnn.to_layout"(%37) : (tensor<35x70xsi32, #ttnn_layout18>) -> tensor<35x70xsi32, #ttnn_layout22>
        "ttnn.deallocate"(%37) <{force = false}> : (tensor<35x70xsi32, #ttnn_layout18>) -> ()
        %44 = "ttnn.reshape"(%43) <{shape = [35 : i32, 1 : i32, 70 : i32]}> : (tensor<35x70xsi32, #ttnn_layout22>) -> tensor<35x1x70xsi32, #ttnn_layout23>
        "ttnn.deallocate"(%43) <{force = false}> : (tensor<35x70xsi32, #ttnn_layout22>) -> ()
        %45 = "ttnn.rows_gather"(%26, %44) <{column = true, fill_out_of_bounds = false, sizes = array<i64: 70>, windows = array<i64: 1>}> : (tensor<35x1x70xf32, #ttnn_layout15>, tensor<35x1x70xsi32, #ttnn_layout23>) -> tensor<35x70xf32, #ttnn_layout4>
        "ttnn.deallocate"(%44) <{force = false}> : (tensor<35x1x70xsi32, #ttnn_layout23>) -> ()
        "ttnn.deallocate"(%26) <{force = false}> : (tensor<35x1x70xf32, #ttnn_layout15>) -> ()
        %46 = "ttnn.to_layout"(%45) : (tensor<35x70xf32, #ttnn_layout4>) -> tensor<35x70xf32, #ttnn_layout8>
        "ttnn.deallocate"(%45) <{force = false}> : (tensor<35x70xf32, #ttnn_layout4>) -> ()
        %47 = "ttnn.where"(%42, %46, %0) : (tensor<35x70xbf16, #ttnn_layout19>, tensor<35x70xf32, #ttnn_layout8>, tensor<1x1xf32, #ttnn_layout>) -> tensor<35x70xf32, #ttnn_layout8>
        "ttnn.deallocate"(%46) <{force = false}> : (tensor<35x70xf32, #ttnn_layout8>) -> ()
        "ttnn.deallocate"(%42) <{force = false}> : (tensor<35x70xbf16, #ttnn_layout19>) -> ()
        "ttnn.deallocate"(%0) <{force = false}> : (tensor<1x1xf32, #ttnn_layout>) -> ()
        return %18, %32, %47 : tensor<9x70xf32, #ttnn_layout6>, tensor<35x9xf32, #ttnn_layout7>, tensor<35x70xf32, #ttnn_layout8>
      }
    }
  }
}
