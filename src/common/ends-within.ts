// Waits for work for a limited time.

/** Resolves to whether the work settles within `msMax`, successfully or not. Never rejects. */
export function endsWithin(work: Promise<unknown>, msMax: number): Promise<boolean> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(false), msMax);
    const end = () => {
      clearTimeout(timer);
      resolve(true);
    };
    work.then(end, end);
  });
}
