/** Why a generation could not be built, for whoever wanted it. */
import { BuildError } from '../compiler/codegen/compile-context.ts';
import { ListenError } from './listeners/port-probe.ts';
import { UnknownEncoder } from './logs/log-format.ts';
import { MemoryRefused } from './worker/generation-builder.ts';

/** What a failed build is to the user: a code and a sentence; a defect is told by its message. */
export interface BuildProblem {
	readonly code: string;
	readonly message: string;
	readonly pointer?: string;
}

/** Returns the problem that an error of a build stands for. */
export function buildProblem(error: unknown): BuildProblem {
	if (error instanceof BuildError) return { code: error.code, message: error.message, pointer: error.pointer };
	if (error instanceof ListenError) return { code: 'listen', message: error.message };
	if (error instanceof MemoryRefused) return { code: 'runtime/no-memory', message: error.message };
	if (error instanceof UnknownEncoder) return { code: 'log/unknown-format', message: error.message };
	return { code: 'runtime/build-failed', message: error instanceof Error ? error.message : String(error) };
}
