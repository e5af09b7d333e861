/** Hands over to another server process, and takes over from one; see runtime/main/handover. */
import { isSea } from 'node:sea';
import type { InheritedAdmin } from '../../admin/bind.ts';
import type { HandoverRequest } from '../../admin/endpoint.ts';
import { type AdminServer, configuredAddress } from '../../admin/server.ts';
import type { ConfigInput } from '../../compiler/dialects/dialect.ts';
import type { AdminSettings } from '../../compiler/document/document.ts';
import type { HandedState } from '../../runtime/main/handover/handed-state.ts';
import {
	HANDOVER_PROTOCOL,
	type Inheritance,
	type Offer,
	READY_LIMIT,
} from '../../runtime/main/handover/handover-protocol.ts';
import {
	InheritedDescriptors,
	SuccessorProcess,
	type SuccessorProgram,
} from '../../runtime/main/handover/successor-process.ts';
import { canDuplicateDescriptors } from '../../runtime/sockets/duplicate-descriptor.ts';
import { printError } from '../command/terminal.ts';
import type { ConfigurationSource } from '../configuration/configuration.ts';

/** How a server was started, as its successors need to know. */
export interface StartedAs {
	readonly adminAnyway?: boolean | undefined;
	readonly source?: Extract<ConfigurationSource, { kind: 'file' }> | undefined;
	readonly madeOfFlags?: boolean | undefined;
	readonly verbose: boolean;
	readonly watch?: boolean | undefined;
	/** True if the server was started by `svc start`, so that nobody waits for the first process to exit. */
	readonly background?: boolean | undefined;
}

/** The parts of an offer that come from the command line and the Admin API. */
export interface SuccessorOffer {
	readonly served: StartedAs;
	readonly admin?: (InheritedAdmin & { readonly wanted: string }) | undefined;
	/** Descriptor of the pipe to the first process, if that one waits for its successors; see {@link Keeper}. */
	readonly keeper?: number | undefined;
	/** True to save the configuration for `run --resume`. */
	readonly saves: boolean;
}

/** The process that hands over, as its caller describes it. */
export interface Predecessor {
	readonly served: StartedAs;
	readonly admin: AdminServer | undefined;
	readonly adminSettings: AdminSettings | undefined;
	/** See {@link SuccessorOffer.keeper}; −1 if this process is the first one and waits itself. */
	readonly keeper: number | undefined;
}

/** Starts a successor for a request. Throws the system's error. */
export function startSuccessor(
	request: HandoverRequest,
	input: ConfigInput | undefined,
	inheritance: Inheritance,
	predecessor: Predecessor,
	onGo: () => HandedState,
): SuccessorProcess {
	const { served, admin, keeper } = predecessor;
	const descriptors = new InheritedDescriptors();
	const moved = descriptors.of(inheritance);
	const standardError = canDuplicateDescriptors() ? descriptors.add(STANDARD_ERROR) : undefined;
	const socket = admin?.socket;
	const wanted = configuredAddress(predecessor.adminSettings);
	const offeredAdmin = socket &&
		wanted !== undefined && { wanted, bound: socket.bound, descriptor: descriptors.add(socket.descriptor) };
	const keeps = keeper === OWN_KEEPER;
	const pipe = keeper === undefined ? undefined : keeps ? descriptors.next : descriptors.add(keeper);
	const added: SuccessorOffer = {
		served,
		...(offeredAdmin && { admin: offeredAdmin }),
		...(pipe !== undefined && { keeper: pipe }),
		saves: request.saves,
	};
	// The pipe's number follows that of the last descriptor, so nothing may be added after it.
	const offer: Offer<SuccessorOffer> = {
		type: 'offer',
		protocol: HANDOVER_PROTOCOL,
		...(input && { input }),
		...(standardError !== undefined && { standardError }),
		inheritance: moved,
		process: added,
	};
	const program = request.binary === undefined ? ownProgram() : { file: request.binary, args: process.argv.slice(2) };
	return new SuccessorProcess(program, offer, descriptors.own, keeps, request.within ?? READY_LIMIT, onGo, printError);
}

/** The number of standard error. */
export const STANDARD_ERROR = 2;

/** Stands for the pipe of a first process that has not handed over yet. */
export const OWN_KEEPER = -1;

/** Returns the running program. If its file has been replaced since it was started, the new file is used: a new release. */
function ownProgram(): SuccessorProgram {
	const { argv, execArgv, execPath } = process;
	return { file: execPath, args: isSea() ? argv.slice(2) : [...execArgv, argv[1]!, ...argv.slice(2)] };
}
