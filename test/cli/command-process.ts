// A process that runs commands one after another, for tests that do not test the process itself: starting Node and
// loading the modules takes most of a command's time. It runs the installed program, which loads faster than separate
// modules. Each message is a command; the reply contains its output and exit code.

import { createRequire } from 'node:module';
import { packageFile } from '../../src/common/package-files.js';

const { runCommand } = createRequire(import.meta.url)(
  packageFile('dist/app/cli/main.js'),
) as typeof import('../../src/cli/main.js');

export interface CommandRequest {
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
}

export interface CommandReply {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Thrown instead of calling process.exit. */
class Exit extends Error {}

// Each run adds a listener.
process.stdout.setMaxListeners(0);
process.setMaxListeners(0);

process.on('message', async (request: CommandRequest) => {
  const reply = await run(request);
  process.send!(reply);
});

async function run({ args, env, cwd }: CommandRequest): Promise<CommandReply> {
  process.chdir(cwd);
  process.env = { ...env };
  process.argv = [process.execPath, packageFile('scripts/sagitta.cjs'), ...args];
  process.exitCode = undefined;
  const stdout = capture(process.stdout);
  const stderr = capture(process.stderr);
  const exited = new Promise<void>((resolve) => {
    process.exit = (code) => {
      process.exitCode = code ?? process.exitCode;
      resolve();
      throw new Exit();
    };
  });
  const ran = runCommand().catch((error: unknown) => {
    if (!(error instanceof Exit)) throw error;
  });
  await Promise.race([ran, exited]);
  // Lets the callbacks of writes run.
  await new Promise((resolve) => setImmediate(resolve));
  return { code: Number(process.exitCode ?? 0), stdout: stdout(), stderr: stderr() };
}

/** Captures everything written from now on; the function that it returns gives the text. */
function capture(stream: NodeJS.WriteStream): () => string {
  const chunks: Uint8Array[] = [];
  stream.write = (
    chunk: string | Uint8Array,
    encodingOrDone?: BufferEncoding | ((error?: Error | null) => void),
    done?: (error?: Error | null) => void,
  ) => {
    const encoding = typeof encodingOrDone === 'string' ? encodingOrDone : 'utf8';
    chunks.push(typeof chunk === 'string' ? Buffer.from(chunk, encoding) : Uint8Array.from(chunk));
    const onWritten = typeof encodingOrDone === 'function' ? encodingOrDone : done;
    if (onWritten !== undefined) process.nextTick(onWritten);
    return true;
  };
  return () => Buffer.concat(chunks).toString();
}
