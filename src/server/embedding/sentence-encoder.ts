// The Universal Sentence Encoder Lite (Cer et al., 2018) over the operations of TensorFlow.js: a transformer of two
// layers, whose outputs are averaged over the word pieces and projected to a unit vector of 512 elements.
//
// The texts of a batch are padded to the longest, so they should be of similar lengths. The second matrix of the last feed-forward network is applied after
// averaging instead of before, which is the same because it is linear, and saves a sixth of the work.

import type * as TensorFlow from '@tensorflow/tfjs-core';
import type { Tensor1D, Tensor2D, Tensor4D } from '@tensorflow/tfjs-core';

/** The namespace of TensorFlow.js, or of a binding with the same operations. */
export type Operations = Pick<
  typeof TensorFlow,
  | 'add'
  | 'fused'
  | 'matMul'
  | 'mean'
  | 'mul'
  | 'reshape'
  | 'rsqrt'
  | 'softmax'
  | 'split'
  | 'square'
  | 'sub'
  | 'tanh'
  | 'tensor1d'
  | 'tensor2d'
  | 'tensor4d'
  | 'tidy'
  | 'transpose'
>;

/** A weight by the name that the model's files give it. Throws for a name that does not exist. */
export type WeightReader = (name: string) => {
  readonly shape: readonly number[];
  readonly values: Float32Array;
};

/** The number of elements of the vectors. */
export const SENTENCE_DIMENSION = 512;
/** The number of pieces that the model can read at once. */
export const PIECES_MAX = 128;

const HEADS = 4;
/** Elements of the vector of a piece. */
const PIECE_DIMENSION = 256;
/** Keeps the deviation in a layer norm from being zero. */
const NORM_EPSILON = 1e-6;
/** Added to the scores of padding, whose weight becomes exactly zero. */
const PADDING_BIAS = -1e9;

// Names of weights in the files of the model.
const ENCODER = 'module_apply_default/Encoder_en/KonaTransformer/Encode';
const INVERSE_TIMESCALES = `${ENCODER}/TransformerStack/Layer_0/AddTimingSignal/TimingSignal/ExpandDims_1`;
const PROJECTION = 'module/Encoder_en/hidden_layers/tanh_layer_0';

interface Dense {
  /** [inputs, outputs]. */
  readonly kernel: Tensor2D;
  readonly bias: Tensor1D;
}

interface Norm {
  readonly scale: Tensor1D;
  readonly bias: Tensor1D;
}

interface Layer {
  readonly dimension: number;
  readonly attentionNorm: Norm;
  /** Queries, keys and values side by side. */
  readonly projection: Dense;
  readonly attentionOutput: Dense;
  /** Widens the input where it has fewer elements than the output. */
  readonly residual: Dense | null;
  readonly networkNorm: Norm;
  readonly hidden: Dense;
  readonly output: Dense;
}

/** Texts as rows of pieces, each followed by padding. */
interface Batch {
  readonly textCount: number;
  /** The number of pieces of the longest text, which is that of the rows of every text. */
  readonly longest: number;
  /** [texts, rows]: averages the rows of each text without its padding. */
  readonly averages: Tensor2D;
  /** [texts, 1, 1, longest]: added to the scores of attention. Null if all texts are equally long. */
  readonly bias: Tensor4D | null;
}

export class SentenceEncoder {
  readonly #tf: Operations;
  readonly #pieceVectors: Float32Array;
  /** Sines and cosines that tell positions apart, [PIECES_MAX, PIECE_DIMENSION]. */
  readonly #positions: Float32Array;
  readonly #first: Layer;
  readonly #last: Layer;
  readonly #projection: Dense;

  constructor(tf: Operations, weightOf: WeightReader) {
    this.#tf = tf;
    this.#pieceVectors = weightOf('module/Embeddings_en').values;
    this.#positions = positionsOf(weightOf(INVERSE_TIMESCALES).values);
    const reader: LayerReader = {
      vector: (name) => tf.tensor1d(weightOf(name).values),
      matrix: (name) => {
        const { shape, values } = weightOf(name);
        // The kernels of convolutions of width one have two more dimensions.
        return tf.tensor2d(values, shape.slice(-2) as [number, number]);
      },
    };
    this.#first = readLayer(0, reader);
    this.#last = readLayer(1, reader);
    this.#projection = {
      kernel: reader.matrix(`${PROJECTION}/weights`),
      bias: reader.vector(`${PROJECTION}/bias`),
    };
  }

  /** The unit vectors of texts of 1 to PIECES_MAX pieces each, row-major [texts.length, SENTENCE_DIMENSION]. */
  encode(texts: readonly (readonly number[])[]): Float32Array {
    const vectors = this.#tf.tidy(() => {
      const batch = batchOf(texts, this.#tf);
      const rowCount = texts.length * batch.longest;
      const inputs = this.#inputsOf(texts, batch.longest);
      const rows = this.#tf.tensor2d(inputs, [rowCount, PIECE_DIMENSION]);
      const mean = this.#meanOfLayers(rows, batch);
      return this.#tf.tanh(this.#dense(mean, this.#projection)).dataSync() as Float32Array;
    });
    for (let at = 0; at < vectors.length; at += SENTENCE_DIMENSION) {
      normalize(vectors.subarray(at, at + SENTENCE_DIMENSION));
    }
    return vectors;
  }

  /** The vectors of the pieces and of their positions, as the model adds them; zeros for padding. */
  #inputsOf(texts: readonly (readonly number[])[], longest: number): Float32Array {
    const inputs = new Float32Array(texts.length * longest * PIECE_DIMENSION);
    for (const [text, pieces] of texts.entries()) {
      let at = text * longest * PIECE_DIMENSION;
      for (const [position, piece] of pieces.entries()) {
        const pieceAt = piece * PIECE_DIMENSION;
        const positionAt = position * PIECE_DIMENSION;
        for (let i = 0; i < PIECE_DIMENSION; i++) {
          inputs[at++] = 2 * this.#pieceVectors[pieceAt + i]! + this.#positions[positionAt + i]!;
        }
      }
    }
    return inputs;
  }

  /** The averages of the last layer's outputs, [texts, SENTENCE_DIMENSION]. */
  #meanOfLayers(inputs: Tensor2D, batch: Batch): Tensor2D {
    const tf = this.#tf;
    const attended = this.#attend(inputs, this.#first, batch);
    const network = this.#dense(this.#hidden(attended, this.#first), this.#first.output);
    const rows = this.#attend(tf.add<Tensor2D>(attended, network), this.#last, batch);
    const hidden: Tensor2D = tf.matMul(batch.averages, this.#hidden(rows, this.#last));
    return tf.add(tf.matMul(batch.averages, rows), this.#dense(hidden, this.#last.output));
  }

  /** The rows after attention, with the residual, [rows, SENTENCE_DIMENSION]. */
  #attend(rows: Tensor2D, layer: Layer, { textCount, longest, bias }: Batch): Tensor2D {
    const tf = this.#tf;
    const headDimension = layer.dimension / HEADS;
    const projected = this.#dense(this.#norm(rows, layer.attentionNorm), layer.projection);
    const [queries, keys, values] = tf.split(projected, 3, 1).map((part) => {
      const heads: Tensor4D = tf.reshape(part, [textCount, longest, HEADS, headDimension]);
      return tf.transpose(heads, [0, 2, 1, 3]);
    }) as [Tensor4D, Tensor4D, Tensor4D];
    const scaled = tf.mul(queries, headDimension ** -0.5);
    const scores: Tensor4D = tf.matMul(scaled, keys, false, true);
    const weights = tf.softmax(bias === null ? scores : tf.add(scores, bias));
    const found = tf.transpose(tf.matMul(weights, values), [0, 2, 1, 3]);
    const context: Tensor2D = tf.reshape(found, [textCount * longest, layer.dimension]);
    const residual = layer.residual === null ? rows : this.#dense(rows, layer.residual);
    return tf.add(this.#dense(context, layer.attentionOutput), residual);
  }

  /** The hidden layer of the feed-forward network. */
  #hidden(rows: Tensor2D, layer: Layer): Tensor2D {
    return this.#dense(this.#norm(rows, layer.networkNorm), layer.hidden, 'relu');
  }

  #dense(
    rows: Tensor2D,
    { kernel, bias }: Dense,
    activation: 'linear' | 'relu' = 'linear',
  ): Tensor2D {
    return this.#tf.fused.matMul({ a: rows, b: kernel, bias, activation }) as Tensor2D;
  }

  /** Each row less its mean, divided by its standard deviation. */
  #norm(rows: Tensor2D, { scale, bias }: Norm): Tensor2D {
    const tf = this.#tf;
    const centred = tf.sub(rows, tf.mean<Tensor2D>(rows, -1, true));
    const variance = tf.mean<Tensor2D>(tf.square(centred), -1, true);
    const factor = tf.mul(scale, tf.rsqrt(tf.add(variance, NORM_EPSILON)));
    return tf.add(tf.mul(centred, factor), bias);
  }
}

/** Gives the vector the length one, in place. */
export function normalize(vector: Float32Array): void {
  const length = Math.hypot(...vector);
  for (let i = 0; i < vector.length; i++) vector[i]! /= length;
}

interface LayerReader {
  vector(name: string): Tensor1D;
  matrix(name: string): Tensor2D;
}

function readLayer(index: 0 | 1, { vector, matrix }: LayerReader): Layer {
  const own = `${ENCODER}/Layer_${index}/TransformerLayer`;
  const attention = `${own}/MultiheadAttention`;
  const kernels = attention.replace('module_apply_default', 'module');
  const partitioned = (name: string) => vector(`${name}/ConcatPartitions/concat`);
  const norm = (folder: string): Norm => ({
    scale: partitioned(`${folder}/layer_prepostprocess/layer_norm/layer_norm_scale`),
    bias: partitioned(`${folder}/layer_prepostprocess/layer_norm/layer_norm_bias`),
  });
  const convolution = (name: string): Dense => ({
    kernel: matrix(`${kernels}/${name}/kernel/part_0`),
    bias: partitioned(`${attention}/${name}/bias`),
  });
  const network = (name: string): Dense => ({
    kernel: matrix(
      `${ENCODER}/TransformerStack/Layer_${index}/TransformerLayer/FFN/${name}/Tensordot/Reshape_1`,
    ),
    bias: partitioned(`${own}/FFN/${name}/bias`),
  });
  return {
    dimension: index === 0 ? PIECE_DIMENSION : SENTENCE_DIMENSION,
    attentionNorm: norm(own),
    projection: convolution('qkv_transform_single'),
    attentionOutput: convolution('output_transform_single'),
    residual:
      index === 0
        ? {
            kernel: matrix(`${own}/dense/kernel/ConcatPartitions/concat`),
            bias: partitioned(`${own}/dense/bias`),
          }
        : null,
    networkNorm: norm(`${own}/FFN`),
    hidden: network('conv1'),
    output: network('conv2'),
  };
}

/** Sines and cosines of each position at wavelengths that grow geometrically. */
function positionsOf(inverseTimescales: Float32Array): Float32Array {
  const positions = new Float32Array(PIECES_MAX * PIECE_DIMENSION);
  const half = PIECE_DIMENSION / 2;
  for (let position = 0; position < PIECES_MAX; position++) {
    const at = position * PIECE_DIMENSION;
    for (const [i, inverse] of inverseTimescales.entries()) {
      positions[at + i] = Math.sin(Math.fround(position * inverse));
      positions[at + half + i] = Math.cos(Math.fround(position * inverse));
    }
  }
  return positions;
}

function batchOf(texts: readonly (readonly number[])[], tf: Operations): Batch {
  const textCount = texts.length;
  const longest = Math.max(...texts.map(({ length }) => length));
  const rowCount = textCount * longest;
  const averages = new Float32Array(textCount * rowCount);
  const bias = new Float32Array(rowCount);
  for (const [text, { length }] of texts.entries()) {
    const start = text * longest;
    averages.fill(1 / length, text * rowCount + start, text * rowCount + start + length);
    bias.fill(PADDING_BIAS, start + length, start + longest);
  }
  return {
    textCount,
    longest,
    averages: tf.tensor2d(averages, [textCount, rowCount]),
    bias: bias.every((value) => value === 0) ? null : tf.tensor4d(bias, [textCount, 1, 1, longest]),
  };
}
