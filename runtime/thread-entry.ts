/** The entry point of every thread except the main one; the binary starts threads from this file's bundle. */
import { parentPort, workerData } from 'node:worker_threads';
import { type IoMode, setIoMode } from './sockets/io-mode.ts';

const port = parentPort;
const data = workerData as { readonly kind?: unknown; readonly io?: IoMode } | null;
if (data?.io !== undefined) setIoMode(data.io);
// Loaded on demand, so that a worker thread does not load the parser and the schema checker.
if (port && data?.kind === 'compiler') {
	import('./compile/compiler-thread.ts').then(({ runCompilerThread }) => runCompilerThread(port, workerData));
} else if (port && data?.kind === 'worker') {
	import('./worker/worker.ts').then(({ runWorker }) => runWorker(port, workerData));
} else if (port && data?.kind === 'passwords') {
	import('./passwords/password-thread.ts').then(({ runPasswordThread }) => runPasswordThread(port));
} else if (port && data?.kind === 'pages') {
	import('./page-work/page-work-thread.ts').then(({ runPageWorkThread }) => runPageWorkThread(port));
}
