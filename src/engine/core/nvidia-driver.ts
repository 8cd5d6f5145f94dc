// Whether the driver of NVIDIA GPUs is installed, which both engines for them need. Tells it at once, while a driver
// takes seconds to start.

const LIBRARY = 'libcuda.so.1';

/** Why there is no driver; null if there is one. Calls nothing in it: a broken driver may never return. */
export function missingDriver(): string | null {
  try {
    process.dlopen({ exports: {} }, LIBRARY);
    return null;
  } catch (error) {
    // Node also throws for a library that it has loaded, since a driver is no addon.
    const { message } = error as Error;
    if (!message.includes('cannot open shared object file')) return null;
    return `no NVIDIA driver was found (${message})`;
  }
}
