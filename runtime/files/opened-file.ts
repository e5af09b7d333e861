/** A file opened for one request. */
import { closeSync, readSync } from 'node:fs';
import type { Body } from '../../compiler/exchange/body.ts';
import { FileError, type FileTime, type OpenFile } from '../../compiler/exchange/leases.ts';
import type { SystemCalls } from '../sockets/file-calls.ts';
import type { FileIdentity } from '../sockets/file-identity.ts';
import { FileBody } from './file-body.ts';
import { type FilePages, RESPONSE_HEAD_ROOM_BYTES } from './file-pages.ts';
import { OpenDescriptor } from './open-descriptor.ts';
import { ReadBody } from './read-body.ts';

/** Maximum bytes of a file that is read at once, and cached in memory if it is popular. */
export const MAX_SMALL_FILE_BYTES: number = 64 * 1024;

/** What a thread needs to read files. */
export interface FileReadDeps {
	/** Direct system calls; undefined if Node's own functions must be used. */
	readonly calls: SystemCalls | undefined;
	readonly pages: FilePages;
}

/** An open file. Its owner must call `close`, or `body` without `keepOpen`, which closes it as well. */
export class OpenedFile implements OpenFile {
	readonly source = 'disk';
	readonly root: string;
	readonly relativePath: string | undefined;
	readonly identity: FileIdentity;
	readonly size: number;
	/** The path with symbolic links resolved. Undefined if it is simply `relativePath` below `root`. */
	#path: string | undefined;
	readonly #deps: FileReadDeps;
	readonly #descriptor: number;
	/** Whether the descriptor was opened by a direct system call, not by Node. */
	readonly #isDirect: boolean;
	#sharedDescriptor: OpenDescriptor | undefined = undefined;
	#isClosed = false;

	/** @param path The real path. Undefined for a file opened by direct calls, whose path is `relativePath` below the root. */
	constructor(
		deps: FileReadDeps,
		descriptor: number,
		root: string,
		path: string | undefined,
		relativePath: string | undefined,
		identity: FileIdentity,
	) {
		this.#deps = deps;
		this.#descriptor = descriptor;
		this.#isDirect = path === undefined;
		this.root = root;
		this.#path = path;
		this.relativePath = relativePath;
		this.identity = identity;
		this.size = identity.size;
	}

	get path(): string {
		this.#path ??= this.root === '/' ? this.relativePath! : this.root + this.relativePath;
		return this.#path;
	}

	get noLinkFollowed(): boolean {
		return this.#isDirect;
	}

	get modified(): FileTime {
		return this.identity;
	}

	body(start: number, end: number, keepOpen = false): Body {
		if (this.#isClosed) throw new FileError('unavailable', 'the file is closed');
		try {
			const length = end - start;
			if (length > MAX_SMALL_FILE_BYTES) return new FileBody(this.shareDescriptor(), start, end, this.#deps.calls);
			return length === 0 ? EMPTY_BYTES : this.#readSmall(start, length);
		} finally {
			if (!keepOpen) this.close();
		}
	}

	/**
	 * Reads the whole file into a buffer of its own: a slice of Node's shared pool would keep the whole pool alive. Throws
	 * FileError.
	 */
	readAll(): Uint8Array {
		const bytes = Buffer.allocUnsafeSlow(this.size);
		this.#readInto(bytes, 0, this.size, 0);
		return bytes;
	}

	/** Returns the descriptor as an object that counts its users. */
	shareDescriptor(): OpenDescriptor {
		this.#sharedDescriptor ??= new OpenDescriptor(
			this.#descriptor,
			this.#isDirect ? this.#deps.calls!.close : closeSync,
		);
		return this.#sharedDescriptor;
	}

	close(): void {
		if (this.#isClosed) return;
		this.#isClosed = true;
		if (this.#sharedDescriptor !== undefined) this.#sharedDescriptor.release();
		else if (this.#isDirect) this.#deps.calls!.close(this.#descriptor);
		else closeSync(this.#descriptor);
	}

	#readSmall(start: number, length: number): ReadBody {
		const { calls, pages } = this.#deps;
		const page = pages.takePage();
		try {
			// A read of the whole file is always the first read, so the descriptor is at position 0 and no offset is needed.
			const readBytes =
				calls !== undefined && length === this.size ? calls.read(this.#descriptor, page.address, length) : -1;
			if (readBytes !== length) this.#readInto(page.memory, RESPONSE_HEAD_ROOM_BYTES, length, start);
		} catch (error) {
			pages.returnPage(page);
			throw error;
		}
		return new ReadBody(pages, page, length);
	}

	#readInto(bytes: Buffer, offset: number, length: number, start: number): void {
		let readBytes = 0;
		while (readBytes < length) {
			let chunkBytes: number;
			try {
				chunkBytes = readSync(this.#descriptor, bytes, offset + readBytes, length - readBytes, start + readBytes);
			} catch (error) {
				throw new FileError('unavailable', 'the file cannot be read', error);
			}
			if (chunkBytes === 0) throw new FileError('unavailable', 'the file was truncated while it was being read');
			readBytes += chunkBytes;
		}
	}
}

const EMPTY_BYTES: Uint8Array = new Uint8Array();
