module @jit_volumes attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32, ttcore.meshes = #ttcore.meshes<[<"mesh" = 1x1>]>} {
  ttcore.device_module {
    builtin.module @jit_volumes attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32, ttcore.meshes = #ttcore.meshes<[<"mesh" = 1x1>]>} {
      func.func public @main(%arg0: tensor<2x4x7x5x40xf32> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<2x4x7x5x40xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, %arg1: tensor<3x3x3x40x8xf32> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<3x3x3x40x8xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, %arg2: tensor<2x37x12xf32> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<2x37x12xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, %arg3: tensor<4x12x20xf32> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<4x12x20xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}) -> (tensor<2x4x7x5x8xf32> {jax.result_info = "result[0]", ttcore.local_shape = #ttcore<local_shape local_shape = tensor<2x4x7x5x8xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, tensor<2x37x20xf32> {jax.result_info = "result[1]", ttcore.local_shape = #ttcore<local_shape local_shape = tensor<2x37x20xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}) {
        %0 = "ttir.permute"(%arg1) <{permutation = array<i64: 4, 3, 0, 1, 2>}> : (tensor<3x3x3x40x8xf32>) -> tensor<8x40x3x3x3xf32>
        %1 = "ttir.conv3d"(%arg0, %0) <{batch_dim = 0 : i64, channel_dim = 4 : i64, depth_dim = 1 : i64, dilation = array<i32: 1, 1, 1>, groups = 1 : i32, height_dim = 2 : i64, padding = array<i32: 1, 1, 1>, padding_mode = "zeros", stride = array<i32: 1, 1, 1>, width_dim = 3 : i64}> : (tensor<2x4x7x5x40xf32>, tensor<8x40x3x3x3xf32>) -> tensor<2x4x7x5x8xf32>
        %2 = "ttir.reshape"(%arg2) <{shape = [2 : i32, 37 : i32, 12 : i32, 1 : i32]}> : (tensor<2x37x12xf32>) -> tensor<2x37x12x1xf32>
        %3 = "ttir.reshape"(%arg3) <{shape = [4 : i32, 12 : i32, 20 : i32, 1 : i32]}> : (tensor<4x12x20xf32>) -> tensor<4x12x20x1xf32>
        %4 = "ttir.permute"(%2) <{permutation = array<i64: 0, 1, 2, 3>}> : (tensor<2x37x12x1xf32>) -> tensor<2x37x12x1xf32>
        %5 = "ttir.reshape"(%4) <{shape = [2 : i32, 37 : i32, 12 : i32]}> : (tensor<2x37x12x1xf32>) -> tensor<2x37x12xf32>
        %6 = "ttir.permute"(%3) <{permutation = array<i64: 2, 1, 0, 3>}> : (tensor<4x12x20x1xf32>) -> tensor<20x12x4x1xf32>
        %7 = "ttir.reshape"(%6) <{shape = [20 : i32, 12 : i32, 4 : i32]}> : (tensor<20x12x4x1xf32>) -> tensor<20x12x4xf32>
        %8 = "ttir.conv1d"(%5, %7) <{batch_dim = 0 : i64, channel_dim = 2 : i64, dilation = 1 : i32, groups = 1 : i32, length_dim = 1 : i64, padding = array<i32: 3, 0>, stride = 1 : i32}> : (tensor<2x37x12xf32>, tensor<20x12x4xf32>) -> tensor<2x37x20xf32>
        %9 = "ttir.reshape"(%8) <{shape = [2 : i32, 37 : i32, 20 : i32, 1 : i32]}> : (tensor<2x37x20xf32>) -> tensor<2x37x20x1xf32>
        %10 = "ttir.permute"(%9) <{permutation = array<i64: 0, 1, 2, 3>}> : (tensor<2x37x20x1xf32>) -> tensor<2x37x20x1xf32>
        %11 = "ttir.reshape"(%10) <{shape = [2 : i32, 37 : i32, 20 : i32]}> : (tensor<2x37x20x1xf32>) -> tensor<2x37x20xf32>
        return %1, %11 : tensor<2x4x7x5x8xf32>, tensor<2x37x20xf32>
      }
    }
  }
}
