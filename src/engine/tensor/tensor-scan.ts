// How the tensor program talks to the scans of its devices.

import type { ExactTopKSelector } from '../core/exact-top-k-selector.js';

export interface RowRange {
  readonly from: number;
  readonly to: number;
}

/** One batch over one block on one kind of device. */
export interface TensorScan {
  /**
   * Collects candidates among the rows of a chunk, now or in `finish`. 'unsuited', with nothing
   * done, where a product does not pay; 'no room' where it would, but the device cannot.
   */
  scan(range: RowRange, scanned: readonly ExactTopKSelector[]): 'scanned' | 'unsuited' | 'no room';
  /** Collects what is left; false when the device has no room for that. */
  finish(): boolean;
  dispose(): void;
}
