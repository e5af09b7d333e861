/** The entry point of threads that run expensive template functions. */
import { mainThread } from '../threads/thread-start.ts';
import { runPageWorkThread } from './page-work-thread.ts';

runPageWorkThread(mainThread);
