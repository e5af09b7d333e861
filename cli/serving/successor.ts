/** A process that takes over from another; see runtime/main/handover. */
import type { Offer } from '../../runtime/main/handover/handover-protocol.ts';
import { PredecessorChannel } from '../../runtime/main/handover/predecessor-channel.ts';
import { EXIT_STATUS } from '../command/command.ts';
import { firstLineOf } from '../command/failure-report.ts';
import { printError } from '../command/terminal.ts';
import type { SuccessorOffer } from './handover.ts';

/** Takes over and serves until stopped. On failure, reports the reason to the predecessor and ends the process. */
export async function runSuccessor(): Promise<never> {
	const channel = new PredecessorChannel();
	try {
		const offer = (await channel.offer()) as Offer<SuccessorOffer>;
		// The variable names the predecessor, although the service manager means the whole service.
		delete process.env.WATCHDOG_PID;
		const { serve } = await import('./serve.ts');
		return await serve({ ...offer.process.served, input: offer.input, succession: { channel, offer } });
	} catch (error) {
		const { StartError } = await import('../../runtime/main/runtime.ts');
		const refused = error instanceof StartError && error.failure.reason === 'refused' ? error.failure : undefined;
		const message = error instanceof Error ? error.message : firstLineOf(error);
		if (!process.connected) printError(`error: ${message}\n`);
		await channel.failed({ message, ...(refused && { diagnostics: refused.diagnostics }) });
		process.exit(EXIT_STATUS.failed);
	}
}
