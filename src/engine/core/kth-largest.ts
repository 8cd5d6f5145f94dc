// The k-th largest of a stream of numbers: a heap with the least of the k largest on top.

export class KthLargest {
  private readonly heap: Float64Array;
  private count = 0;

  constructor(k: number) {
    this.heap = new Float64Array(k);
  }

  /** −Infinity until k numbers were added. */
  get value(): number {
    return this.count < this.heap.length || this.count === 0
      ? Number.NEGATIVE_INFINITY
      : this.heap[0]!;
  }

  add(value: number): void {
    if (this.count < this.heap.length) this.siftUp(this.count++, value);
    else if (this.count > 0 && value > this.heap[0]!) this.siftDown(value);
  }

  private siftUp(from: number, value: number): void {
    const { heap } = this;
    let place = from;
    while (place > 0) {
      const parent = (place - 1) >> 1;
      if (heap[parent]! <= value) break;
      heap[place] = heap[parent]!;
      place = parent;
    }
    heap[place] = value;
  }

  private siftDown(value: number): void {
    const { heap, count } = this;
    let place = 0;
    for (;;) {
      let child = 2 * place + 1;
      if (child >= count) break;
      if (child + 1 < count && heap[child + 1]! < heap[child]!) child++;
      if (heap[child]! >= value) break;
      heap[place] = heap[child]!;
      place = child;
    }
    heap[place] = value;
  }
}
