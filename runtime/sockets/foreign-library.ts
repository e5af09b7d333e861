/**
 * Looks up functions of the C library and of Node's own OpenSSL, and provides what is needed to call them: addresses, callbacks,
 * native memory.
 */
import {
	type ForeignFunction,
	type ForeignSignature,
	foreignFunctions,
	loadForeignFunctions,
} from './foreign-functions.ts';
import { isDirectIo } from './io-mode.ts';
import { uncheckedFunctionsOf } from './unchecked-functions.ts';

/** Functions by name. Addresses and 64-bit numbers are BigInts. */
export type ForeignCalls<Name extends string> = { readonly [name in Name]: ForeignFunction };

/** The functions that were found, and helpers for calling them: addresses of memory, callbacks, and access to native memory. */
export interface ForeignLibrary<Name extends string = string> {
	readonly functions: ForeignCalls<Name>;
	/** Returns the address of memory outside the heap. The memory must neither be freed nor move while the address is used. */
	addressOf(memory: Uint8Array): bigint;
	/** Registers a function for C to call on this thread. It is kept as long as the thread lives, and must not throw. */
	registerCallback(result: string, parameterTypes: readonly string[], run: (...values: never[]) => unknown): bigint;
	/** Copies the bytes at an address into a new Buffer. */
	copyBytes(address: bigint, length: number): Buffer;
	/** Returns the zero-terminated string at an address. */
	readText(address: bigint): string;
	writeBytes(address: bigint, bytes: Uint8Array): void;
	writeUint64(address: bigint, value: bigint): void;
	writeUint8(address: bigint, value: number): void;
	writeInt32(address: bigint, value: number): void;
	/** Returns the error number of the last system call. */
	errno(): number;
}

/** The functions available to one thread, or why they are not available. */
export type ForeignSupport<Name extends string> =
	| { readonly library: ForeignLibrary<Name>; readonly missing?: undefined }
	| { readonly library?: undefined; readonly missing: string };

/** What a test pretends about the process: a missing symbol, or another version of OpenSSL. */
export interface LibrarySimulation {
	/** Name of a symbol that cannot be found. */
	readonly missing?: string;
	readonly openssl?: string;
}

/** Describes a function: its result, then its parameters. */
export function foreignSignature(result: string, ...parameterTypes: string[]): ForeignSignature {
	return { return: result, arguments: parameterTypes };
}

/**
 * Looks up all functions in OpenSSL 3.5 or a later 3.x, on Linux.
 * @param reentrantNames Functions that call back into JavaScript. They are always called through Node's checks.
 * @param hotSignatures Functions that are called often and never call back. Their arguments are not checked.
 */
export function findOpenssl<Name extends string>(
	signatures: { readonly [name in Name]: ForeignSignature },
	reentrantNames: readonly NoInfer<Name>[],
	simulated: LibrarySimulation = {},
	hotSignatures: { readonly [name in NoInfer<Name>]?: ForeignSignature } = {},
): ForeignSupport<Name> {
	const problem = platformProblem(simulated.openssl);
	if (problem) return problem;
	const ffi = foreignFunctions();
	if (ffi === undefined) return { missing: 'this Node has no `node:ffi`' };
	try {
		const allSignatures: { [name: string]: ForeignSignature } = { ...signatures };
		if (simulated.missing !== undefined) allSignatures[`missing_${simulated.missing}`] = foreignSignature('void');
		const uncheckedFunctions = uncheckedFunctionsOf(ffi, hotSignatures as { [name: string]: ForeignSignature });
		const functions = { ...loadForeignFunctions(ffi, allSignatures), ...uncheckedFunctions } as ForeignCalls<Name>;
		const reentrantSignatures = Object.fromEntries(reentrantNames.map(name => [name, signatures[name]]));
		return { library: new BoundLibrary(ffi, functions, reentrantSignatures) };
	} catch (error) {
		const cause = error instanceof Error ? error.message : String(error);
		return { missing: `a function of OpenSSL or of the C library is missing (${cause})` };
	}
}

/**
 * Reports whether {@link findOpenssl} would find functions with the given names. It takes a fraction of the time, because nothing is
 * prepared for calling them.
 */
export function hasOpensslFunctions(names: readonly string[]): boolean {
	const ffi = foreignFunctions();
	if (ffi === undefined || platformProblem()) return false;
	try {
		const { lib } = ffi.dlopen(null, {});
		for (const name of names) lib.getSymbol(name);
		return true;
	} catch {
		return false;
	}
}

function platformProblem(
	opensslVersion: string = process.versions.openssl ?? '',
): { readonly missing: string } | undefined {
	if (process.platform !== 'linux' || (process.arch !== 'x64' && process.arch !== 'arm64')) {
		return { missing: 'it needs Linux on x64 or arm64' };
	}
	const [major = 0, minor = 0] = opensslVersion.split('.').map(Number);
	if (major === 3 && minor >= 5) return undefined;
	return { missing: `it needs OpenSSL 3.5 or a later 3.x, and Node has ${opensslVersion || 'none'}` };
}

/**
 * If this thread is not in `direct` I/O mode, returns that as the reason why the functions are not available; otherwise
 * undefined.
 */
export function directIoProblem(): { readonly missing: string } | undefined {
	return isDirectIo() ? undefined : { missing: 'it needs `direct` I/O' };
}

class BoundLibrary<Name extends string> implements ForeignLibrary<Name> {
	readonly functions: ForeignCalls<Name>;
	readonly #ffi: typeof import('node:ffi');
	readonly #callbackLibrary: {
		registerCallback(signature: ForeignSignature, run: (...values: never[]) => unknown): bigint;
	};
	readonly #errnoAddress: bigint;
	/** Registered callbacks, kept here because C may call them as long as the thread lives. */
	readonly #callbacks: unknown[] = [];

	constructor(
		ffi: typeof import('node:ffi'),
		foundFunctions: ForeignCalls<Name>,
		reentrant: { readonly [name: string]: ForeignSignature },
	) {
		this.#ffi = ffi;
		const { lib, functions } = ffi.dlopen(null, {
			...(reentrant as { [name: string]: never }),
			__errno_location: { return: 'pointer', arguments: [] },
		});
		const { __errno_location: errnoLocation, ...reentrantFunctions } = functions as unknown as {
			[name: string]: ForeignFunction;
		};
		this.functions = { ...foundFunctions, ...reentrantFunctions };
		this.#callbackLibrary = lib as never;
		this.#errnoAddress = errnoLocation!() as bigint;
	}

	addressOf(memory: Uint8Array): bigint {
		return this.#ffi.getRawPointer(memory);
	}

	registerCallback(result: string, parameterTypes: readonly string[], run: (...values: never[]) => unknown): bigint {
		this.#callbacks.push(run);
		return this.#callbackLibrary.registerCallback({ return: result, arguments: parameterTypes }, run);
	}

	copyBytes(address: bigint, length: number): Buffer {
		return Buffer.from(this.#ffi.toBuffer(address, length, true));
	}

	readText(address: bigint): string {
		return this.#ffi.toString(address) ?? '';
	}

	writeBytes(address: bigint, bytes: Uint8Array): void {
		this.#ffi.exportArrayBufferView(bytes, address, bytes.byteLength);
	}

	writeUint64(address: bigint, value: bigint): void {
		this.#ffi.setUint64(address, 0, value);
	}

	writeUint8(address: bigint, value: number): void {
		this.#ffi.setUint8(address, 0, value);
	}

	writeInt32(address: bigint, value: number): void {
		this.#ffi.setInt32(address, 0, value);
	}

	errno(): number {
		return this.#ffi.getInt32(this.#errnoAddress);
	}
}
