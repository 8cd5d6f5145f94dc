// Mutual exclusion of asynchronous sections, in order of arrival.

export class Lock {
  #last: Promise<unknown> = Promise.resolve();

  /** Runs `section` after every section that was given before has settled. */
  run<Result>(section: () => Promise<Result>): Promise<Result> {
    const result = this.#last.then(section, section);
    this.#last = result.catch(() => {});
    return result;
  }
}
