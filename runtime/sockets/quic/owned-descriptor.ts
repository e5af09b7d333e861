/**
 * A descriptor that is closed when its thread ends, however it ends. A descriptor that nobody owns would stay open in the
 * process, and the kernel would go on giving datagrams to a socket that nobody reads.
 */

interface PipeHandle {
	readonly fd: number;
	open(descriptor: number): number;
	unref(): void;
	close(): void;
}

interface PipeBinding {
	readonly Pipe: new (kind: number) => PipeHandle;
	readonly constants: { readonly SOCKET: number };
}

/** Owns one descriptor. */
export class OwnedDescriptor {
	readonly #handle: PipeHandle;
	#open = true;

	/** Takes the descriptor over; `close` closes it if that fails, and the error is thrown. */
	constructor(descriptor: number, close: (descriptor: number) => void) {
		const { binding } = process as unknown as { binding(name: string): unknown };
		const pipes = binding.call(process, 'pipe_wrap') as PipeBinding;
		this.#handle = new pipes.Pipe(pipes.constants.SOCKET);
		this.#handle.unref();
		if (this.#handle.open(descriptor) === 0) return;
		this.#handle.close();
		close(descriptor);
		throw Object.assign(new Error('The descriptor cannot be owned.'), { code: 'EMFILE' });
	}

	/** Closes it; the system may do so a moment later. */
	close(): void {
		if (!this.#open) return;
		this.#open = false;
		this.#handle.close();
	}
}
