/** A file that was opened for one request. */
import { closeSync, readSync } from 'node:fs';
import type { Body } from '../../compiler/exchange/body.ts';
import { FileError, type FileTime, type OpenFile } from '../../compiler/exchange/leases.ts';
import type { SystemCalls } from '../sockets/file-calls.ts';
import { FileBody } from './file-body.ts';
import type { FileIdentity } from './file-identity.ts';
import { type FilePages, HEAD_ROOM } from './file-pages.ts';
import { OpenDescriptor } from './open-descriptor.ts';
import { ReadBody } from './read-body.ts';

/** Bytes of a file that is read at once, and kept in memory when it comes again. */
export const SMALL: number = 64 * 1024;

/** What files are read with, one for a thread. */
export interface ReadingMeans {
	/** Undefined where the system has none: all is done by Node's own functions. */
	readonly calls: SystemCalls | undefined;
	readonly pages: FilePages;
}

/** A file that is open. Whoever took it closes it: by `close`, or by the end of its body. */
export class OpenedFile implements OpenFile {
	readonly from = 'disk';
	readonly root: string;
	readonly below: string | undefined;
	readonly identity: FileIdentity;
	readonly size: number;
	/** Path with links resolved; made of root and path when it is asked for, where it is nothing else. */
	#path: string | undefined;
	readonly #means: ReadingMeans;
	readonly #descriptor: number;
	/** Whether the descriptor is the system's own and not Node's. */
	readonly #isDirect: boolean;
	#shared: OpenDescriptor | undefined = undefined;
	#closed = false;

	/** `path` is undefined for what was opened by the calls: then it is `below` below the root. */
	constructor(
		means: ReadingMeans,
		descriptor: number,
		root: string,
		path: string | undefined,
		below: string | undefined,
		identity: FileIdentity,
	) {
		this.#means = means;
		this.#descriptor = descriptor;
		this.#isDirect = path === undefined;
		this.root = root;
		this.#path = path;
		this.below = below;
		this.identity = identity;
		this.size = identity.size;
	}

	get path(): string {
		this.#path ??= this.root === '/' ? this.below! : this.root + this.below;
		return this.#path;
	}

	get asNamed(): boolean {
		return this.#isDirect;
	}

	get changed(): FileTime {
		return this.identity;
	}

	body(start: number, end: number, keepOpen = false): Body {
		if (this.#closed) throw new FileError('unavailable', 'the file is closed');
		try {
			const length = end - start;
			if (length > SMALL) return new FileBody(this.share(), start, end, this.#means.calls);
			return length === 0 ? EMPTY : this.#read(start, length);
		} finally {
			if (!keepOpen) this.close();
		}
	}

	/** All of it, in memory of its own: a piece of a shared one would keep the whole of that alive. Throws FileError. */
	whole(): Uint8Array {
		const bytes = Buffer.allocUnsafeSlow(this.size);
		this.#readInto(bytes, 0, this.size, 0);
		return bytes;
	}

	/** The descriptor, for others who hold it. */
	share(): OpenDescriptor {
		this.#shared ??= new OpenDescriptor(this.#descriptor, this.#isDirect ? this.#means.calls!.close : closeSync);
		return this.#shared;
	}

	close(): void {
		if (this.#closed) return;
		this.#closed = true;
		if (this.#shared !== undefined) this.#shared.letGo();
		else if (this.#isDirect) this.#means.calls!.close(this.#descriptor);
		else closeSync(this.#descriptor);
	}

	#read(start: number, length: number): ReadBody {
		const { calls, pages } = this.#means;
		const page = pages.take();
		try {
			// Whoever reads all of it reads it first.
			const count =
				calls !== undefined && length === this.size ? calls.read(this.#descriptor, page.address, length) : -1;
			if (count !== length) this.#readInto(page.memory, HEAD_ROOM, length, start);
		} catch (error) {
			pages.giveBack(page);
			throw error;
		}
		return new ReadBody(pages, page, length);
	}

	#readInto(bytes: Buffer, offset: number, length: number, start: number): void {
		let at = 0;
		while (at < length) {
			let count: number;
			try {
				count = readSync(this.#descriptor, bytes, offset + at, length - at, start + at);
			} catch (error) {
				throw new FileError('unavailable', 'the file cannot be read', error);
			}
			if (count === 0) throw new FileError('unavailable', 'the file became shorter while it was read');
			at += count;
		}
	}
}

const EMPTY: Uint8Array = new Uint8Array();
