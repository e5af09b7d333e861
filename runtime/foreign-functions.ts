/** Functions of the C library, for what the system can do and Node has no way to ask for. */

/**
 * `node:ffi`; undefined where Node has none. The module warns on standard error that it is an experiment: users can do
 * nothing about that, so it does not.
 */
export function foreignFunctions(): typeof import('node:ffi') | undefined {
	const { emitWarning } = process;
	process.emitWarning = () => {};
	try {
		return process.getBuiltinModule('node:ffi');
	} finally {
		process.emitWarning = emitWarning;
	}
}
