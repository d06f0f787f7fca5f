module @jit__lambda attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32, ttcore.meshes = #ttcore.meshes<[<"mesh" = 2x4>]>} {
  ttcore.device_module {
    builtin.module @jit__lambda attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32, ttcore.meshes = #ttcore.meshes<[<"mesh" = 2x4>]>} {
      func.func public @main(%arg0: tensor<50x12xf32> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<50x12xf32>>, ttcore.shard_status = #ttcore.shard_status<presharded>}, %arg1: tensor<3x17xi32> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<3x17xi32>>, ttcore.shard_status = #ttcore.shard_status<presharded>}, %arg2: tensor<17x12xf32> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<17x12xf32>>, ttcore.shard_status = #ttcore.shard_status<presharded>}) -> (tensor<3x17x12xf32> {jax.result_info = "result", ttcore.local_shape = #ttcore<local_shape local_shape = tensor<3x17x12xf32>>, ttcore.shard_status = #ttcore.shard_status<presharded>}) {
        %0 = "ttir.constant"() <{value = dense<99> : tensor<i32>}> : () -> tensor<i32>
        %1 = "ttir.constant"() <{value = dense<50> : tensor<i32>}> : () -> tensor<i32>
        %2 = "ttir.constant"() <{value = dense<4> : tensor<i32>}> : () -> tensor<i32>
        %3 = "ttir.constant"() <{value = dense<2> : tensor<i32>}> : () -> tensor<i32>
        %4 = "ttir.constant"() <{value = dense<2.000000e+00> : tensor<f32>}> : () -> tensor<f32>
        %5 = "ttir.constant"() <{value = dense<100> : tensor<i32>}> : () -> tensor<i32>
        %6 = "ttir.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
        %7 = "ttir.reshape"(%6) <{shape = [1 : i32, 1 : i32]}> : (tensor<i32>) -> tensor<1x1xi32>
        %8 = "ttir.broadcast"(%7) <{broadcast_dimensions = array<i64: 3, 17>}> : (tensor<1x1xi32>) -> tensor<3x17xi32>
        %9 = "ttir.lt"(%arg1, %8) : (tensor<3x17xi32>, tensor<3x17xi32>) -> tensor<3x17xi1>
        %10 = "ttir.reshape"(%5) <{shape = [1 : i32, 1 : i32]}> : (tensor<i32>) -> tensor<1x1xi32>
        %11 = "ttir.broadcast"(%10) <{broadcast_dimensions = array<i64: 3, 17>}> : (tensor<1x1xi32>) -> tensor<3x17xi32>
        %12 = "ttir.add"(%arg1, %11) : (tensor<3x17xi32>, tensor<3x17xi32>) -> tensor<3x17xi32>
        %13 = "ttir.where"(%9, %12, %arg1) : (tensor<3x17xi1>, tensor<3x17xi32>, tensor<3x17xi32>) -> tensor<3x17xi32>
        %14 = "ttir.reshape"(%13) <{shape = [3 : i32, 17 : i32, 1 : i32]}> : (tensor<3x17xi32>) -> tensor<3x17x1xi32>
        %15 = "ttir.constant"() <{value = dense<[[0, 1, 2, 3], [4, 5, 6, 7]]> : tensor<2x4xui32>}> : () -> tensor<2x4xui32>
        %16 = "ttir.mesh_partition"(%15) <{cluster_axis = 0 : ui32, dim = 0 : si32}> : (tensor<2x4xui32>) -> tensor<1x4xui32>
        %17 = "ttir.mesh_partition"(%16) <{cluster_axis = 1 : ui32, dim = 1 : si32}> : (tensor<1x4xui32>) -> tensor<1x1xui32>
        %18 = "ttir.reshape"(%17) <{shape = []}> : (tensor<1x1xui32>) -> tensor<ui32>
        %19 = "ttir.typecast"(%18) <{conservative_folding = true}> : (tensor<ui32>) -> tensor<i32>
        %20 = "ttir.div"(%19, %2) : (tensor<i32>, tensor<i32>) -> tensor<i32>
        %21 = "ttir.remainder"(%20, %3) : (tensor<i32>, tensor<i32>) -> tensor<i32>
        %22 = "ttir.multiply"(%21, %1) : (tensor<i32>, tensor<i32>) -> tensor<i32>
        %23 = "ttir.reshape"(%22) <{shape = [1 : i32, 1 : i32, 1 : i32]}> : (tensor<i32>) -> tensor<1x1x1xi32>
        %24 = "ttir.broadcast"(%23) <{broadcast_dimensions = array<i64: 3, 17, 1>}> : (tensor<1x1x1xi32>) -> tensor<3x17x1xi32>
        %25 = "ttir.clamp_tensor"(%14, %6, %0) : (tensor<3x17x1xi32>, tensor<i32>, tensor<i32>) -> tensor<3x17x1xi32>
        %26 = "ttir.subtract"(%25, %24) : (tensor<3x17x1xi32>, tensor<3x17x1xi32>) -> tensor<3x17x1xi32>
        %27 = "ttir.reshape"(%arg0) <{shape = [1 : i32, 50 : i32, 12 : i32]}> : (tensor<50x12xf32>) -> tensor<1x50x12xf32>
        %28 = "ttir.reshape"(%26) <{shape = [1 : i32, 3 : i32, 17 : i32]}> : (tensor<3x17x1xi32>) -> tensor<1x3x17xi32>
        %29 = "ttir.reshape"(%28) <{shape = [1 : i32, 1 : i32, 51 : i32]}> : (tensor<1x3x17xi32>) -> tensor<1x1x51xi32>
        %30 = "ttir.typecast"(%29) <{conservative_folding = false}> : (tensor<1x1x51xi32>) -> tensor<1x1x51xsi32>
        %31 = "ttir.rows_gather"(%27, %30) <{column = false, fill_out_of_bounds = true, sizes = array<i64: 50>, windows = array<i64: 1>}> : (tensor<1x50x12xf32>, tensor<1x1x51xsi32>) -> tensor<1x51x12xf32>
        %32 = "ttir.reshape"(%31) <{shape = [3 : i32, 17 : i32, 12 : i32]}> : (tensor<1x51x12xf32>) -> tensor<3x17x12xf32>
        %33 = "ttir.all_reduce"(%32) <{cluster_axis = 0 : ui32, reduce_type = #ttcore.reduce_type<sum>}> : (tensor<3x17x12xf32>) -> tensor<3x17x12xf32>
        %34 = "ttir.reshape"(%4) <{shape = [1 : i32, 1 : i32, 1 : i32]}> : (tensor<f32>) -> tensor<1x1x1xf32>
        %35 = "ttir.broadcast"(%34) <{broadcast_dimensions = array<i64: 3, 17, 12>}> : (tensor<1x1x1xf32>) -> tensor<3x17x12xf32>
        %36 = "ttir.multiply"(%33, %35) : (tensor<3x17x12xf32>, tensor<3x17x12xf32>) -> tensor<3x17x12xf32>
        %37 = "ttir.reshape"(%arg2) <{shape = [1 : i32, 17 : i32, 12 : i32]}> : (tensor<17x12xf32>) -> tensor<1x17x12xf32>
        %38 = "ttir.broadcast"(%37) <{broadcast_dimensions = array<i64: 3, 1, 1>}> : (tensor<1x17x12xf32>) -> tensor<3x17x12xf32>
        %39 = "ttir.add"(%36, %38) : (tensor<3x17x12xf32>, tensor<3x17x12xf32>) -> tensor<3x17x12xf32>
        return %39 : tensor<3x17x12xf32>
      }
    }
  }
}
