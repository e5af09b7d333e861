/** A process that takes over from another; see runtime/main/handover. */

import type { Offer } from '../../runtime/main/handover/handover-protocol.ts';
import { PredecessorChannel } from '../../runtime/main/handover/predecessor-channel.ts';
import { replaceDescriptor } from '../../runtime/sockets/duplicate-descriptor.ts';
import { exitWithoutThreads } from '../../runtime/sockets/exit-without-threads.ts';
import { EXIT_STATUS } from '../command/command.ts';
import { firstLineOf } from '../command/failure-report.ts';
import { printError } from '../command/terminal.ts';
import { STANDARD_ERROR_FD, type SuccessorOffer } from './handover.ts';

/**
 * Takes over from the predecessor and serves until stopped. On failure, reports the reason to the predecessor and ends the process.
 */
export async function runSuccessor(): Promise<never> {
	const channel = new PredecessorChannel();
	// This listener is removed once this process serves. The entry point also reports the error, and ends the process.
	process.prependListener('uncaughtException', error => void channel.reportFailure({ message: firstLineOf(error) }));
	try {
		const offer = (await channel.receiveOffer()) as Offer<SuccessorOffer>;
		if (offer.standardError !== undefined) replaceDescriptor(STANDARD_ERROR_FD, offer.standardError);
		// `WATCHDOG_PID` still names the predecessor, but the service manager watches whichever process serves.
		delete process.env.WATCHDOG_PID;
		const { serve } = await import('./serve.ts');
		const serving = serve({ ...offer.process.served, input: offer.input, succession: { channel, offer } });
		return await Promise.race([serving, channel.whenExpired]);
	} catch (error) {
		const { StartError } = await import('../../runtime/main/runtime.ts');
		const refusal = error instanceof StartError && error.failure.reason === 'refused' ? error.failure : undefined;
		const message = error instanceof Error ? error.message : firstLineOf(error);
		if (!channel.isOpen) printError(`error: ${message}\n`);
		const { kindOfStartFailure } = await import('../../runtime/publications/load-failure.ts');
		const isCauseOnMachine = error instanceof StartError && kindOfStartFailure(error) === 'machine';
		await channel.reportFailure({
			message,
			...(refusal && { diagnostics: refusal.diagnostics }),
			...(isCauseOnMachine && { isCauseOnMachine }),
		});
		// A thread that hangs, which may be the reason for the failure, would keep the process alive.
		exitWithoutThreads(EXIT_STATUS.failed);
		throw error;
	}
}
