/** The user-facing error of a generation that could not be built. */
import { BuildError } from '../../compiler/modules/contract/compile-context.ts';
import { ListenError } from '../listeners/port-probe.ts';
import { UnknownEncoder } from '../logs/log-format.ts';
import { OutOfSharedMemory } from './generation-builder.ts';

/** A failed build as it is reported to the user: a code and a message. For an internal error, the message is the exception's. */
export interface BuildProblem {
	readonly code: string;
	readonly message: string;
	readonly pointer?: string;
}

/** Converts an error thrown by a build to the problem that is reported to the user. */
export function toBuildProblem(error: unknown): BuildProblem {
	if (error instanceof BuildError) return { code: error.code, message: error.message, pointer: error.pointer };
	if (error instanceof ListenError) return { code: 'listen', message: error.message };
	if (error instanceof OutOfSharedMemory) return { code: 'runtime/no-memory', message: error.message };
	if (error instanceof UnknownEncoder) return { code: 'log/unknown-format', message: error.message };
	return { code: 'runtime/build-failed', message: error instanceof Error ? error.message : String(error) };
}
