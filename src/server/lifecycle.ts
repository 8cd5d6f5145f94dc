// Which replies are under way, and whether the application is stopping.

export class Lifecycle {
  isStopping = false;
  #underWayCount = 0;
  #onDrained: (() => void) | undefined;

  get inFlightCount(): number {
    return this.#underWayCount;
  }

  /** A request was accepted; `end` follows when its reply is sent to the last byte, or its client gone. */
  begin(): void {
    this.#underWayCount++;
  }

  end(): void {
    this.#underWayCount--;
    if (this.#underWayCount === 0) this.#onDrained?.();
  }

  /** Resolves when no reply is under way, after `msMax` at the latest. */
  async drained(msMax: number): Promise<void> {
    if (this.#underWayCount === 0) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, msMax);
      this.#onDrained = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}
