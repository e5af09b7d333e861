/** Describes why a server did not start, for whoever started it. */
import { AdminBindError } from '../../admin/bind.ts';
import type { ConfigInput } from '../../compiler/dialects/dialect.ts';
import { StartError } from '../../runtime/main/runtime.ts';
import { CommandFailure } from '../command/command.ts';
import { refusalSentence } from '../command/refusal.ts';
import type { StartSettings } from './handover.ts';

/** Returns the error to report for a server that did not start. */
export function startFailure(
	error: unknown,
	{
		input,
		madeOfFlags,
		source,
	}: Pick<StartSettings, 'madeOfFlags' | 'source'> & { readonly input: ConfigInput | undefined },
): unknown {
	if (error instanceof AdminBindError) {
		return new CommandFailure(`${error.message}: ${bindReason(error.code)}.${handoverHint(error.code, source?.name)}`);
	}
	if (!(error instanceof StartError)) return error;
	const { failure } = error;
	if (failure.reason === 'listen') {
		return new CommandFailure(`${error.message}${handoverHint(failure.code, source?.name)}`);
	}
	if (failure.reason !== 'refused') return new CommandFailure(error.message);
	const { diagnostics } = failure;
	if (madeOfFlags) return new CommandFailure(error.message);
	const preamble = diagnostics.map(({ text }) => `${text}\n\n`).join('');
	return new CommandFailure(refusalSentence(input?.name ?? 'The configuration', diagnostics), { preamble });
}

/** Returns a hint if an address is in use by one of our own servers. */
function handoverHint(code: string, file: string | undefined): string {
	if (code !== 'EADDRINUSE' || file === undefined) return '';
	return ` If a running svc uses it, \`svc reload ${file} --handover\` makes that one serve this file, without downtime.`;
}

/** Returns why the Admin API's address could not be bound, by the system's error code. */
function bindReason(code: string): string {
	const reasons: { readonly [code: string]: string } = {
		EADDRINUSE: 'the address is in use',
		EACCES: 'permission denied',
		EADDRNOTAVAIL: 'no network interface of this machine has the address',
		EINVAL: 'it is not an address',
		ENOTFOUND: 'the host name cannot be resolved',
		ENOENT: 'the folder of the socket does not exist',
		EBADF: 'the process was not started with this descriptor',
		ENOTSOCK: 'it is not a socket',
	};
	return reasons[code] ?? code;
}
