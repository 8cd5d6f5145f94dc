// Complete writes to a stdout that is a file. Node does not notice when the system writes only part of a chunk, as
// happens just before a disk is full: the file would be cut off without an error.

import { fstatSync, writeSync } from 'node:fs';

/** Makes each write complete or fail with an error of the stream. Does nothing for pipes and terminals. */
export function completeWrites(stream: NodeJS.WriteStream & { readonly fd: number }): void {
  const { fd } = stream;
  if (!isFile(fd)) return;
  stream._write = (chunk: Uint8Array, _, done) => {
    try {
      for (let at = 0; at < chunk.length; ) at += writeSync(fd, chunk, at);
    } catch (error) {
      done(error as Error);
      return;
    }
    done();
  };
}

function isFile(fd: number): boolean {
  try {
    return fstatSync(fd).isFile();
  } catch {
    // The parent process has closed the descriptor.
    return false;
  }
}
