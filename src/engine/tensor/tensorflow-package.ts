// The members of TensorFlow's binding for Node that tensorflow-device.ts uses, declared here so that
// the build is the same with and without the package.

export interface TensorFlowTensor {
  /** Waits for the device. */
  dataSync(): Float32Array;
  dispose(): void;
}

export interface TensorFlow {
  enableProdMode(): void;
  ready(): Promise<void>;
  backend(): {
    readonly binding: { readonly TF_Version: string };
    readonly isUsingGpuDevice: boolean;
  };
  memory(): { readonly numTensors: number };
  tidy<Result>(work: () => Result): Result;
  scalar(value: number): TensorFlowTensor;
  tensor2d(values: Float32Array, shape: [number, number], type: 'float32'): TensorFlowTensor;
  fill(shape: [number, number], value: number): TensorFlowTensor;
  slice(tensor: TensorFlowTensor, begin: number[], size: number[]): TensorFlowTensor;
  reshape(tensor: TensorFlowTensor, shape: number[]): TensorFlowTensor;
  concat(tensors: readonly TensorFlowTensor[], axis: number): TensorFlowTensor;
  cast(tensor: TensorFlowTensor, type: 'float32'): TensorFlowTensor;
  matMul(left: TensorFlowTensor, right: TensorFlowTensor): TensorFlowTensor;
  mul(left: TensorFlowTensor, right: TensorFlowTensor): TensorFlowTensor;
  add(left: TensorFlowTensor, right: TensorFlowTensor): TensorFlowTensor;
  greater(left: TensorFlowTensor, right: TensorFlowTensor): TensorFlowTensor;
  where(
    condition: TensorFlowTensor,
    whereTrue: TensorFlowTensor,
    whereFalse: TensorFlowTensor,
  ): TensorFlowTensor;
  topk(
    tensor: TensorFlowTensor,
    k: number,
    isSorted: boolean,
  ): { values: TensorFlowTensor; indices: TensorFlowTensor };
}
