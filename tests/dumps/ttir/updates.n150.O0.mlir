module @jit_updates attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32, ttcore.meshes = #ttcore.meshes<[<"mesh" = 1x1>]>} {
  ttcore.device_module {
    builtin.module @jit_updates attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32, ttcore.meshes = #ttcore.meshes<[<"mesh" = 1x1>]>} {
      func.func public @main(%arg0: tensor<35x70xf32> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<35x70xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, %arg1: tensor<4x7xf32> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<4x7xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, %arg2: tensor<i32> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<i32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}) -> (tensor<35x70xf32> {jax.result_info = "result[0]", ttcore.local_shape = #ttcore<local_shape local_shape = tensor<35x70xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, tensor<35x70xf32> {jax.result_info = "result[1]", ttcore.local_shape = #ttcore<local_shape local_shape = tensor<35x70xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, tensor<4x7xf32> {jax.result_info = "result[2]", ttcore.local_shape = #ttcore<local_shape local_shape = tensor<4x7xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, tensor<35x70xf32> {jax.result_info = "result[3]", ttcore.local_shape = #ttcore<local_shape local_shape = tensor<35x70xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}) {
        %0 = "ttir.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
        %1 = "ttir.constant"() <{value = dense<35> : tensor<i32>}> : () -> tensor<i32>
        %2 = "ttir.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
        %3 = "ttir.constant"() <{value = dense<2> : tensor<i32>}> : () -> tensor<i32>
        %4 = "ttir.constant"() <{value = dense<3> : tensor<i32>}> : () -> tensor<i32>
        %5 = "ttir.reshape"(%3) <{shape = [1 : i32, 1 : i32]}> : (tensor<i32>) -> tensor<1x1xi32>
        %6 = "ttir.clamp_scalar"(%5) <{max = 31 : i32, min = 0 : i32}> : (tensor<1x1xi32>) -> tensor<1x1xsi32>
        %7 = "ttir.reshape"(%4) <{shape = [1 : i32, 1 : i32]}> : (tensor<i32>) -> tensor<1x1xi32>
        %8 = "ttir.clamp_scalar"(%7) <{max = 63 : i32, min = 0 : i32}> : (tensor<1x1xi32>) -> tensor<1x1xsi32>
        %9 = "ttir.concat"(%6, %8) <{dim = 1 : si32}> : (tensor<1x1xsi32>, tensor<1x1xsi32>) -> tensor<1x2xsi32>
        %10 = "ttir.reshape"(%9) <{shape = [1 : i32, 2 : i32, 1 : i32]}> : (tensor<1x2xsi32>) -> tensor<1x2x1xsi32>
        %11 = "ttir.reshape"(%arg0) <{shape = [1 : i32, 35 : i32, 70 : i32]}> : (tensor<35x70xf32>) -> tensor<1x35x70xf32>
        %12 = "ttir.reshape"(%arg1) <{shape = [1 : i32, 28 : i32]}> : (tensor<4x7xf32>) -> tensor<1x28xf32>
        %13 = "ttir.rows_scatter"(%11, %10, %12) <{column = true, reduce = #ttcore.reduce_type<invalid>, sizes = array<i64: 35, 70>, windows = array<i64: 4, 7>}> : (tensor<1x35x70xf32>, tensor<1x2x1xsi32>, tensor<1x28xf32>) -> tensor<1x35x70xf32>
        %14 = "ttir.reshape"(%13) <{shape = [35 : i32, 70 : i32]}> : (tensor<1x35x70xf32>) -> tensor<35x70xf32>
        %15 = "ttir.lt"(%arg2, %2) : (tensor<i32>, tensor<i32>) -> tensor<i1>
        %16 = "ttir.add"(%arg2, %1) : (tensor<i32>, tensor<i32>) -> tensor<i32>
        %17 = "ttir.where"(%15, %16, %arg2) : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
        %18 = "ttir.reshape"(%17) <{shape = [1 : i32]}> : (tensor<i32>) -> tensor<1xi32>
        %19 = "ttir.clamp_scalar"(%18) <{max = 31 : i32, min = 0 : i32}> : (tensor<1xi32>) -> tensor<1xi32>
        %20 = "ttir.reshape"(%2) <{shape = [1 : i32]}> : (tensor<i32>) -> tensor<1xi32>
        %21 = "ttir.clamp_scalar"(%20) <{max = 63 : i32, min = 0 : i32}> : (tensor<1xi32>) -> tensor<1xi32>
        %22 = "ttir.concat"(%19, %21) <{dim = 0 : si32}> : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
        %23 = "ttir.constant"() <{value = dense<[4, 7]> : tensor<2xi32>}> : () -> tensor<2xi32>
        %24 = "ttir.add"(%22, %23) : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi32>
        %25 = "ttir.slice_dynamic"(%arg0, %22, %24) : (tensor<35x70xf32>, tensor<2xi32>, tensor<2xi32>) -> tensor<4x7xf32>
        %26 = "ttir.reshape"(%4) <{shape = [1 : i32]}> : (tensor<i32>) -> tensor<1xi32>
        %27 = "ttir.reshape"(%0) <{shape = [1 : i32]}> : (tensor<f32>) -> tensor<1xf32>
        %28 = "ttir.broadcast"(%27) <{broadcast_dimensions = array<i64: 70>}> : (tensor<1xf32>) -> tensor<70xf32>
        %29 = "ttir.reshape"(%26) <{shape = [1 : i32, 1 : i32, 1 : i32]}> : (tensor<1xi32>) -> tensor<1x1x1xi32>
        %30 = "ttir.typecast"(%29) <{conservative_folding = false}> : (tensor<1x1x1xi32>) -> tensor<1x1x1xsi32>
        %31 = "ttir.reshape"(%28) <{shape = [1 : i32, 1 : i32, 70 : i32]}> : (tensor<70xf32>) -> tensor<1x1x70xf32>
        %32 = "ttir.rows_scatter"(%11, %30, %31) <{column = false, reduce = #ttcore.reduce_type<invalid>, sizes = array<i64: 35>, windows = array<i64: 1>}> : (tensor<1x35x70xf32>, tensor<1x1x1xsi32>, tensor<1x1x70xf32>) -> tensor<1x35x70xf32>
        %33 = "ttir.reshape"(%32) <{shape = [35 : i32, 70 : i32]}> : (tensor<1x35x70xf32>) -> tensor<35x70xf32>
        %34 = "ttir.slice_static"(%arg1) <{begins = [0 : i32, 0 : i32], ends = [2 : i32, 1 : i32], step = [1 : i32, 1 : i32]}> : (tensor<4x7xf32>) -> tensor<2x1xf32>
        %35 = "ttir.broadcast"(%34) <{broadcast_dimensions = array<i64: 1, 70>}> : (tensor<2x1xf32>) -> tensor<2x70xf32>
        %36 = "ttir.reshape"(%20) <{shape = [1 : i32, 1 : i32, 1 : i32]}> : (tensor<1xi32>) -> tensor<1x1x1xi32>
        %37 = "ttir.typecast"(%36) <{conservative_folding = false}> : (tensor<1x1x1xi32>) -> tensor<1x1x1xsi32>
        %38 = "ttir.reshape"(%35) <{shape = [1 : i32, 2 : i32, 70 : i32]}> : (tensor<2x70xf32>) -> tensor<1x2x70xf32>
        %39 = "ttir.rows_scatter"(%11, %37, %38) <{column = false, reduce = #ttcore.reduce_type<sum>, sizes = array<i64: 35>, windows = array<i64: 2>}> : (tensor<1x35x70xf32>, tensor<1x1x1xsi32>, tensor<1x2x70xf32>) -> tensor<1x35x70xf32>
        %40 = "ttir.reshape"(%39) <{shape = [35 : i32, 70 : i32]}> : (tensor<1x35x70xf32>) -> tensor<35x70xf32>
        return %14, %33, %25, %40 : tensor<35x70xf32>, tensor<35x70xf32>, tensor<4x7xf32>, tensor<35x70xf32>
      }
    }
  }
}
