/**
 * A descriptor that is closed when its thread ends, for whatever reason. Without this, it would stay open in the process, and the
 * kernel would continue to deliver datagrams to a socket that nobody reads.
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

export class OwnedDescriptor {
	readonly #handle: PipeHandle;
	#isOpen = true;

	/** Takes over the descriptor. If that fails, closes it with `close` and throws the error. */
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

	/** Starts to close the descriptor. It may still be open when the method returns. */
	close(): void {
		if (!this.#isOpen) return;
		this.#isOpen = false;
		this.#handle.close();
	}
}
