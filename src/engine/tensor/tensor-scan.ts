// The interface of the scans of the tensor program: product-scan.ts and top-scan.ts.

import type { ExactTopKSelector } from './exact-top-k-selector.js';

export interface RowRange {
  readonly from: number;
  readonly to: number;
}

/** The scan of one batch over one block. */
export interface TensorScan {
  /**
   * Collects candidates among the rows of a chunk, now or in `finish`. Returns 'unsuited', without having done
   * anything, when a product is not worthwhile, and 'no room' when the device has no room for it.
   */
  scan(range: RowRange, scanned: readonly ExactTopKSelector[]): 'scanned' | 'unsuited' | 'no room';
  /** Collects the remaining candidates. Returns false when the device has no room. */
  finish(): boolean;
  dispose(): void;
}
