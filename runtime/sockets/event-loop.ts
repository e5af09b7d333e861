/**
 * What the poller needs to know about Node's event loop (libuv's) while it waits for events in place of that loop: how long it
 * may wait, and how to run what JavaScript has queued.
 */
import { loadForeignFunctions } from './foreign-functions.ts';
import { uncheckedFunctionsOf } from './unchecked-functions.ts';

/** The event loop of the calling thread. */
export interface EventLoop {
	/** The `epoll` of all descriptors that the event loop watches. */
	readonly epoll: number;
	/**
	 * Runs the callbacks of `process.nextTick` and of promises, as Node does when a callback has returned; undefined if Node does
	 * not offer this. Throws what such a callback throws.
	 */
	readonly runQueuedCallbacks: (() => void) | undefined;
	/**
	 * Returns for how many milliseconds the event loop would wait for events: −1 for any time, and 0 if it has something else to
	 * do, such as `setImmediate` or a handle to close.
	 */
	readonly waitMilliseconds: () => number;
	/**
	 * Takes the time of the event loop from the clock. Must be called after waiting, and before `waitMilliseconds`; otherwise timers
	 * are late.
	 */
	readonly updateTime: () => void;
}

/** Throws if a function of libuv cannot be called. */
export function currentEventLoop(ffi: typeof import('node:ffi')): EventLoop {
	const loop = ffi.getCurrentEventLoop();
	const { uv_backend_fd: backendDescriptor } = loadForeignFunctions(ffi, {
		uv_backend_fd: { return: 'int32', arguments: ['pointer'] },
	});
	const { uv_backend_timeout: backendTimeout, uv_update_time: updateTime } = uncheckedFunctionsOf(ffi, {
		uv_backend_timeout: { return: 'int32', arguments: ['pointer'] },
		uv_update_time: { return: 'void', arguments: ['pointer'] },
	});
	const { _tickCallback: runQueuedCallbacks } = process as unknown as { readonly _tickCallback?: () => void };
	return {
		epoll: backendDescriptor(loop) as number,
		runQueuedCallbacks: typeof runQueuedCallbacks === 'function' ? runQueuedCallbacks : undefined,
		waitMilliseconds: () => backendTimeout(loop) as number,
		updateTime: () => void updateTime(loop),
	};
}
