/**
 * The first steps of the entry point of every thread except the main thread. An entry point imports this module before anything
 * else, so that the I/O mode is set when other modules are evaluated.
 */
import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import { type IoMode, setIoMode } from '../sockets/io-mode.ts';

const { io } = workerData as { readonly io?: IoMode };
if (io !== undefined) setIoMode(io);

/** The thread's end of the channel to the main thread. */
export const mainThread: MessagePort = parentPort!;

/** What the main thread passed to {@link startThread}. */
export { workerData as threadData };
