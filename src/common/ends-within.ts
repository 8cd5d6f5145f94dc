// Waits for work, but not for ever.

/** Whether the work ends within so long, well or not. Never rejects. */
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
