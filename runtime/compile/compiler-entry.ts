/** The entry point of the compile thread. */
import { mainThread, threadData } from '../threads/thread-start.ts';
import { runCompilerThread } from './compiler-thread.ts';

runCompilerThread(mainThread, threadData);
