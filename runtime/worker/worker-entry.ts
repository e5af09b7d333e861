/** The entry point of worker threads. */
import { mainThread, threadData } from '../threads/thread-start.ts';
import { runWorker } from './worker.ts';

runWorker(mainThread, threadData);
