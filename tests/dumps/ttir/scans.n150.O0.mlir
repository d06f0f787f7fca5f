module @jit_scans attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32, ttcore.meshes = #ttcore.meshes<[<"mesh" = 1x1>]>} {
  ttcore.device_module {
    builtin.module @jit_scans attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32, ttcore.meshes = #ttcore.meshes<[<"mesh" = 1x1>]>} {
      func.func public @main(%arg0: tensor<4x5x16xf32> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<4x5x16xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, %arg1: tensor<16x16xf32> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<16x16xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}) -> (tensor<5x16xf32> {jax.result_info = "result[0]", ttcore.local_shape = #ttcore<local_shape local_shape = tensor<5x16xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, tensor<4x5x16xf32> {jax.result_info = "result[1]", ttcore.local_shape = #ttcore<local_shape local_shape = tensor<4x5x16xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}) {
        %0 = "ttir.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
        %1 = "ttir.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
        %2 = "ttir.reshape"(%1) <{shape = [1 : i32, 1 : i32]}> : (tensor<f32>) -> tensor<1x1xf32>
        %3 = "ttir.broadcast"(%2) <{broadcast_dimensions = array<i64: 5, 16>}> : (tensor<1x1xf32>) -> tensor<5x16xf32>
        %4 = "ttir.reshape"(%1) <{shape = [1 : i32, 1 : i32, 1 : i32]}> : (tensor<f32>) -> tensor<1x1x1xf32>
        %5 = "ttir.broadcast"(%4) <{broadcast_dimensions = array<i64: 4, 5, 16>}> : (tensor<1x1x1xf32>) -> tensor<4x5x16xf32>
        %6:3 = "ttcore.while_loop"(%0, %3, %5, %arg0, %arg1) <{body_program = @main_counted_loop, initial = #ttcore.loop_bound<0>, limit = #ttcore.loop_bound<4>, output_indices = array<i32: 0, 1, 2>, state_count = 3 : i32, step = #ttcore.loop_bound<1>}> : (tensor<i32>, tensor<5x16xf32>, tensor<4x5x16xf32>, tensor<4x5x16xf32>, tensor<16x16xf32>) -> (tensor<i32>, tensor<5x16xf32>, tensor<4x5x16xf32>)
        return %6#1, %6#2 : tensor<5x16xf32>, tensor<4x5x16xf32>
      }
      func.func private @main_counted_loop(%arg0: tensor<i32> loc("jit(scans)/while"(#loc26)), %arg1: tensor<5x16xf32> loc("jit(scans)/while"(#loc26)), %arg2: tensor<4x5x16xf32> loc("jit(scans)/while"(#loc26)), %arg3: tensor<4x5x16xf32> loc("jit(scans)/while"(#loc26)), %arg4: tensor<16x16xf32> loc("jit(scans)/while"(#loc26))) -> (tensor<i32>, tensor<5x16xf32>, tensor<4x5x16xf32>) attributes {tt.function_type = "forward_device"} {
        %0 = "ttir.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
        %1 = "ttir.constant"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
        %2 = "ttir.reshape"(%arg0) <{shape = [1 : i32]}> : (tensor<i32>) -> tensor<1xi32>
        %3 = "ttir.clamp_scalar"(%2) <{max = 3 : i32, min = 0 : i32}> : (tensor<1xi32>) -> tensor<1xi32>
        %4 = "ttir.reshape"(%0) <{shape = [1 : i32]}> : (tensor<i32>) -> tensor<1xi32>
        %5 = "ttir.clamp_scalar"(%4) <{max = 0 : i32, min = 0 : i32}> : (tensor<1xi32>) -> tensor<1xi32>
        %6 = "ttir.concat"(%3, %5, %5) <{dim = 0 : si32}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
        %7 = "ttir.constant"() <{value = dense<[1, 5, 16]> : tensor<3xi32>}> : () -> tensor<3xi32>
        %8 = "ttir.add"(%6, %7) : (tensor<3xi32>, tensor<3xi32>) -> tensor<3xi32>
        %9 = "ttir.slice_dynamic"(%arg3, %6, %8) : (tensor<4x5x16xf32>, tensor<3xi32>, tensor<3xi32>) -> tensor<1x5x16xf32>
        %10 = "ttir.reshape"(%9) <{shape = [5 : i32, 16 : i32]}> : (tensor<1x5x16xf32>) -> tensor<5x16xf32>
        %11 = "ttir.dot_general"(%arg1, %arg4) <{batch_dims_lhs = array<i64>, batch_dims_rhs = array<i64>, contract_dims_lhs = array<i64: 1>, contract_dims_rhs = array<i64: 0>}> : (tensor<5x16xf32>, tensor<16x16xf32>) -> tensor<5x16xf32>
        %12 = "ttir.add"(%11, %10) : (tensor<5x16xf32>, tensor<5x16xf32>) -> tensor<5x16xf32>
        %13 = "ttir.tanh"(%12) : (tensor<5x16xf32>) -> tensor<5x16xf32>
        %14 = "ttir.reshape"(%13) <{shape = [1 : i32, 5 : i32, 16 : i32]}> : (tensor<5x16xf32>) -> tensor<1x5x16xf32>
        %15 = "ttir.reshape"(%arg0) <{shape = [1 : i32, 1 : i32]}> : (tensor<i32>) -> tensor<1x1xi32>
        %16 = "ttir.clamp_scalar"(%15) <{max = 3 : i32, min = 0 : i32}> : (tensor<1x1xi32>) -> tensor<1x1xsi32>
        %17 = "ttir.reshape"(%16) <{shape = [1 : i32, 1 : i32, 1 : i32]}> : (tensor<1x1xsi32>) -> tensor<1x1x1xsi32>
        %18 = "ttir.reshape"(%arg2) <{shape = [1 : i32, 4 : i32, 5 : i32, 16 : i32]}> : (tensor<4x5x16xf32>) -> tensor<1x4x5x16xf32>
        %19 = "ttir.reshape"(%14) <{shape = [1 : i32, 1 : i32, 5 : i32, 16 : i32]}> : (tensor<1x5x16xf32>) -> tensor<1x1x5x16xf32>
        %20 = "ttir.rows_scatter"(%18, %17, %19) <{column = false, reduce = #ttcore.reduce_type<invalid>, sizes = array<i64: 4>, windows = array<i64: 1>}> : (tensor<1x4x5x16xf32>, tensor<1x1x1xsi32>, tensor<1x1x5x16xf32>) -> tensor<1x4x5x16xf32>
        %21 = "ttir.reshape"(%20) <{shape = [4 : i32, 5 : i32, 16 : i32]}> : (tensor<1x4x5x16xf32>) -> tensor<4x5x16xf32>
        %22 = "ttir.add"(%arg0, %1) : (tensor<i32>, tensor<i32>) -> tensor<i32>
        return %22, %13, %21 : tensor<i32>, tensor<5x16xf32>, tensor<4x5x16xf32>
      }
    }
  }
}
