module @jit_counts attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32, ttcore.meshes = #ttcore.meshes<[<"mesh" = 1x2>]>} {
  ttcore.device_module {
    builtin.module @jit_counts attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32, ttcore.meshes = #ttcore.meshes<[<"mesh" = 1x2>]>} {
      func.func public @main(%arg0: tensor<9x7xf32> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<9x7xf32>>, ttcore.shard_status = #ttcore.shard_status<presharded>}, %arg1: tensor<i32> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<i32>>, ttcore.shard_status = #ttcore.shard_status<presharded>}, %arg2: tensor<i32> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<i32>>, ttcore.shard_status = #ttcore.shard_status<presharded>}) -> (tensor<9x7xf32> {jax.result_info = "result[0]", ttcore.local_shape = #ttcore<local_shape local_shape = tensor<9x7xf32>>, ttcore.shard_status = #ttcore.shard_status<presharded>}, tensor<9x7xf32> {jax.result_info = "result[1]", ttcore.local_shape = #ttcore<local_shape local_shape = tensor<9x7xf32>>, ttcore.shard_status = #ttcore.shard_status<presharded>}) {
        %0 = "ttir.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
        %1 = "ttir.add"(%arg1, %arg2) : (tensor<i32>, tensor<i32>) -> tensor<i32>
        %2:2 = "ttcore.while_loop"(%arg1, %arg0, %1) <{body_program = @main_counted_loop, initial = #ttcore.loop_bound<0, 0 : i32>, limit = #ttcore.loop_bound<0, 2 : i32>, output_indices = array<i32: 0, 1>, state_count = 2 : i32, step = #ttcore.loop_bound<1>}> : (tensor<i32>, tensor<9x7xf32>, tensor<i32>) -> (tensor<i32>, tensor<9x7xf32>)
        %3:2 = "ttcore.while_loop"(%0, %arg0, %arg2) <{body_program = @main_counted_loop_0, initial = #ttcore.loop_bound<0>, limit = #ttcore.loop_bound<0, 2 : i32>, output_indices = array<i32: 0, 1>, state_count = 2 : i32, step = #ttcore.loop_bound<1>}> : (tensor<i32>, tensor<9x7xf32>, tensor<i32>) -> (tensor<i32>, tensor<9x7xf32>)
        return %2#1, %3#1 : tensor<9x7xf32>, tensor<9x7xf32>
      }
      func.func private @main_counted_loop(%arg0: tensor<i32>, %arg1: tensor<9x7xf32>, %arg2: tensor<i32>) -> (tensor<i32>, tensor<9x7xf32>) attributes {tt.function_type = "forward_device"} {
        %0 = "ttir.constant"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
        %1 = "ttir.constant"() <{value = dense<1.500000e+00> : tensor<f32>}> : () -> tensor<f32>
        %2 = "ttir.add"(%arg0, %0) : (tensor<i32>, tensor<i32>) -> tensor<i32>
        %3 = "ttir.reshape"(%1) <{shape = [1 : i32, 1 : i32]}> : (tensor<f32>) -> tensor<1x1xf32>
        %4 = "ttir.broadcast"(%3) <{broadcast_dimensions = array<i64: 9, 7>}> : (tensor<1x1xf32>) -> tensor<9x7xf32>
        %5 = "ttir.multiply"(%arg1, %4) : (tensor<9x7xf32>, tensor<9x7xf32>) -> tensor<9x7xf32>
        %6 = "ttir.typecast"(%arg0) <{conservative_folding = true}> : (tensor<i32>) -> tensor<f32>
        %7 = "ttir.reshape"(%6) <{shape = [1 : i32, 1 : i32]}> : (tensor<f32>) -> tensor<1x1xf32>
        %8 = "ttir.broadcast"(%7) <{broadcast_dimensions = array<i64: 9, 7>}> : (tensor<1x1xf32>) -> tensor<9x7xf32>
        %9 = "ttir.add"(%5, %8) : (tensor<9x7xf32>, tensor<9x7xf32>) -> tensor<9x7xf32>
        return %2, %9 : tensor<i32>, tensor<9x7xf32>
      }
      func.func private @main_counted_loop_0(%arg0: tensor<i32>, %arg1: tensor<9x7xf32>, %arg2: tensor<i32>) -> (tensor<i32>, tensor<9x7xf32>) attributes {tt.function_type = "forward_device"} {
        %0 = "ttir.constant"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
        %1 = "ttir.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
        %2 = "ttir.constant"() <{value = dense<9> : tensor<i32>}> : () -> tensor<i32>
        %3 = "ttir.constant"() <{value = dense<2.000000e+00> : tensor<f32>}> : () -> tensor<f32>
        %4 = "ttir.add"(%arg0, %0) : (tensor<i32>, tensor<i32>) -> tensor<i32>
        %5 = "ttir.lt"(%arg0, %1) : (tensor<i32>, tensor<i32>) -> tensor<i1>
        %6 = "ttir.add"(%arg0, %2) : (tensor<i32>, tensor<i32>) -> tensor<i32>
        %7 = "ttir.where"(%5, %6, %arg0) : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
        %8 = "ttir.reshape"(%7) <{shape = [1 : i32]}> : (tensor<i32>) -> tensor<1xi32>
        %9 = "ttir.clamp_scalar"(%8) <{max = 8 : i32, min = 0 : i32}> : (tensor<1xi32>) -> tensor<1xi32>
        %10 = "ttir.reshape"(%1) <{shape = [1 : i32]}> : (tensor<i32>) -> tensor<1xi32>
        %11 = "ttir.clamp_scalar"(%10) <{max = 0 : i32, min = 0 : i32}> : (tensor<1xi32>) -> tensor<1xi32>
        %12 = "ttir.concat"(%9, %11) <{dim = 0 : si32}> : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
        %13 = "ttir.constant"() <{value = dense<[1, 7]> : tensor<2xi32>}> : () -> tensor<2xi32>
        %14 = "ttir.add"(%12, %13) : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi32>
        %15 = "ttir.slice_dynamic"(%arg1, %12, %14) : (tensor<9x7xf32>, tensor<2xi32>, tensor<2xi32>) -> tensor<1x7xf32>
        %16 = "ttir.reshape"(%15) <{shape = [7 : i32]}> : (tensor<1x7xf32>) -> tensor<7xf32>
        %17 = "ttir.reshape"(%3) <{shape = [1 : i32]}> : (tensor<f32>) -> tensor<1xf32>
        %18 = "ttir.broadcast"(%17) <{broadcast_dimensions = array<i64: 7>}> : (tensor<1xf32>) -> tensor<7xf32>
        %19 = "ttir.multiply"(%16, %18) : (tensor<7xf32>, tensor<7xf32>) -> tensor<7xf32>
        %20 = "ttir.typecast"(%arg0) <{conservative_folding = true}> : (tensor<i32>) -> tensor<f32>
        %21 = "ttir.reshape"(%20) <{shape = [1 : i32]}> : (tensor<f32>) -> tensor<1xf32>
        %22 = "ttir.broadcast"(%21) <{broadcast_dimensions = array<i64: 7>}> : (tensor<1xf32>) -> tensor<7xf32>
        %23 = "ttir.add"(%19, %22) : (tensor<7xf32>, tensor<7xf32>) -> tensor<7xf32>
        %24 = "ttir.reshape"(%arg1) <{shape = [1 : i32, 9 : i32, 7 : i32]}> : (tensor<9x7xf32>) -> tensor<1x9x7xf32>
        %25 = "ttir.reshape"(%8) <{shape = [1 : i32, 1 : i32, 1 : i32]}> : (tensor<1xi32>) -> tensor<1x1x1xi32>
        %26 = "ttir.typecast"(%25) <{conservative_folding = false}> : (tensor<1x1x1xi32>) -> tensor<1x1x1xsi32>
        %27 = "ttir.reshape"(%23) <{shape = [1 : i32, 1 : i32, 7 : i32]}> : (tensor<7xf32>) -> tensor<1x1x7xf32>
        %28 = "ttir.rows_scatter"(%24, %26, %27) <{column = false, reduce = #ttcore.reduce_type<invalid>, sizes = array<i64: 9>, windows = array<i64: 1>}> : (tensor<1x9x7xf32>, tensor<1x1x1xsi32>, tensor<1x1x7xf32>) -> tensor<1x9x7xf32>
        %29 = "ttir.reshape"(%28) <{shape = [9 : i32, 7 : i32]}> : (tensor<1x9x7xf32>) -> tensor<9x7xf32>
        return %4, %29 : tensor<i32>, tensor<9x7xf32>
      }
    }
  }
}
