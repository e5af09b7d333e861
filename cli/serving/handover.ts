/** Hands over to another server process, and takes over from one; see runtime/main/handover. */
import { closeSync, existsSync, openSync } from 'node:fs';
import { isSea } from 'node:sea';
import type { InheritedAdmin } from '../../admin/bind.ts';
import type { ConfirmationTerms } from '../../admin/confirmation.ts';
import type { HandoverRequest } from '../../admin/endpoint.ts';
import { configuredAddress } from '../../admin/server.ts';
import type { ConfigInput } from '../../compiler/dialects/dialect.ts';
import type { AdminSettings } from '../../compiler/document/document.ts';
import type { MachineFailure } from '../../runtime/cluster/rollout-decision.ts';
import type { HandedState } from '../../runtime/main/handover/handed-state.ts';
import {
	CONFIRMED_HANDOVER_PROTOCOL,
	HANDOVER_PROTOCOL,
	type Inheritance,
	type Offer,
	READY_LIMIT_MS,
} from '../../runtime/main/handover/handover-protocol.ts';
import {
	InheritedDescriptors,
	SuccessorProcess,
	type SuccessorProgram,
} from '../../runtime/main/handover/successor-process.ts';
import { canDuplicateDescriptors } from '../../runtime/sockets/duplicate-descriptor.ts';
import { printError } from '../command/terminal.ts';
import type { ConfigurationSource } from '../configuration/configuration.ts';

/** The settings of a server's start that its successors need. */
export interface StartSettings {
	readonly adminAnyway?: boolean | undefined;
	readonly source?: Extract<ConfigurationSource, { kind: 'file' }> | undefined;
	readonly madeOfFlags?: boolean | undefined;
	readonly verbose: boolean;
	readonly watch?: boolean | undefined;
	/** True if the server was started by `svc start`, so that nobody waits for the first process to exit. */
	readonly background?: boolean | undefined;
	/** The publication that the server starts with; present if it takes its configuration from the cluster. */
	readonly fleet?: FleetStart | undefined;
}

/**
 * The state with which a process starts that takes its configuration from the cluster. It consists of JSON values, because it is
 * sent to successors.
 */
export interface FleetStart {
	/** The document of the machine's own file, as JSON. The options `cluster` and `admin` in it always apply. */
	readonly ownDocument: string;
	/** ID of the machine. */
	readonly machine: string;
	/** Number of the publication that the process serves; 0 for the machine's own file. */
	readonly serves: number;
	/** Identity of this publication, which tells it apart from another one with the same number. */
	readonly identity?: string | undefined;
	/** Share of responses that were server errors before the publication was loaded, from 0 to 1. */
	readonly errorRateBefore: number;
	/** True if the publication comes from the disk of the machine, because Redis has not told what to serve. */
	readonly isFromDisk?: boolean | undefined;
	/** Failures that the machine still has to report to the cluster. */
	readonly failures: readonly MachineFailure[];
}

/** The part of the offer to a successor that concerns the process as a whole, not the runtime. */
export interface SuccessorOffer {
	readonly served: StartSettings;
	readonly admin?: (InheritedAdmin & { readonly wanted: string }) | undefined;
	/** Descriptor of the pipe to the first process, if the first process waits for its successors; see {@link Keeper}. */
	readonly keeper?: number | undefined;
	/** True to save the configuration for `run --resume`. */
	readonly saves: boolean;
	/** True if the successor takes the place of a process that has ended unexpectedly. */
	readonly replacesFailed?: true | undefined;
	/** Present if the successor must be confirmed. */
	readonly tentative?: TentativeOffer | undefined;
}

/** The terms under which a successor must be confirmed, and the program and configuration to return to if it is not. */
export interface TentativeOffer {
	readonly terms: ConfirmationTerms;
	readonly program: KeptProgram;
	/** The predecessor's configuration; undefined if it has none. */
	readonly input?: ConfigInput | undefined;
}

/** The predecessor's program, kept so that it can be started again. */
export interface KeptProgram extends SuccessorProgram {
	/** The successor's descriptor of the executable file, which may have been replaced at its path by a new release. */
	readonly executable?: number | undefined;
}

/** A request for a handover, with details that do not come from the Admin API. */
export interface OwnHandover extends HandoverRequest {
	/** The program of the new process and its arguments, used instead of `binary`. */
	readonly program?: SuccessorProgram | undefined;
	/** The state with which the new process starts, if it is to serve a different publication of the cluster. */
	readonly fleet?: FleetStart | undefined;
	/** See {@link SuccessorOffer.replacesFailed}. */
	readonly replacesFailed?: true;
}

/** The process that hands over, as the caller of {@link startSuccessor} describes it. */
export interface Predecessor {
	readonly startSettings: StartSettings;
	/** The socket on which the Admin API listens. */
	readonly adminSocket: InheritedAdmin | undefined;
	readonly adminSettings: AdminSettings | undefined;
	/** The pipe to the first process, as in {@link SuccessorOffer.keeper}; {@link OWN_KEEPER} if this process is the first one. */
	readonly keeperDescriptor: number | undefined;
	/** The configuration being served; undefined before the first load. */
	readonly input: ConfigInput | undefined;
}

/** Starts a successor for a request. Throws the system's error. */
export function startSuccessor(
	request: OwnHandover,
	inheritance: Inheritance,
	predecessor: Predecessor,
	onGo: () => HandedState,
): SuccessorProcess {
	const { startSettings, adminSocket, keeperDescriptor } = predecessor;
	const { confirm, input = predecessor.input } = request;
	const descriptors = new InheritedDescriptors();
	const ownExecutableFd = confirm && isSea() ? openExecutable() : undefined;
	const renumberedInheritance = descriptors.renumber(inheritance);
	const standardError = canDuplicateDescriptors() ? descriptors.add(STANDARD_ERROR_FD) : undefined;
	const adminAddress = configuredAddress(predecessor.adminSettings);
	const offeredAdmin = adminSocket &&
		adminAddress !== undefined && {
			wanted: adminAddress,
			bound: adminSocket.bound,
			descriptor: descriptors.add(adminSocket.descriptor),
		};
	const executableDescriptor = ownExecutableFd === undefined ? undefined : descriptors.add(ownExecutableFd);
	const isKeeper = keeperDescriptor === OWN_KEEPER;
	const keeperPipe =
		keeperDescriptor === undefined ? undefined : isKeeper ? descriptors.nextNumber : descriptors.add(keeperDescriptor);
	const successorOffer: SuccessorOffer = {
		served: request.fleet ? { ...startSettings, fleet: request.fleet } : startSettings,
		...(offeredAdmin && { admin: offeredAdmin }),
		...(keeperPipe !== undefined && { keeper: keeperPipe }),
		saves: request.shouldSave,
		...(request.replacesFailed && { replacesFailed: true }),
		...(confirm && {
			tentative: {
				terms: confirm,
				program: { ...ownProgram(), executable: executableDescriptor },
				input: predecessor.input,
			},
		}),
	};
	// The successor assumes that the pipe has the next number after these descriptors, so no descriptor may be added after this
	// line.
	const offer: Offer<SuccessorOffer> = {
		type: 'offer',
		protocol: confirm ? CONFIRMED_HANDOVER_PROTOCOL : HANDOVER_PROTOCOL,
		...(input && { input }),
		...(standardError !== undefined && { standardError }),
		inheritance: renumberedInheritance,
		process: successorOffer,
	};
	const { binary } = request;
	const binaryProgram = binary === undefined ? undefined : { file: binary, args: process.argv.slice(2) };
	const program = request.program ?? binaryProgram ?? ownProgram();
	const readyLimitMs = request.within ?? READY_LIMIT_MS;
	try {
		return new SuccessorProcess(program, offer, descriptors.all, isKeeper, readyLimitMs, onGo, printError);
	} finally {
		if (ownExecutableFd !== undefined) closeSync(ownExecutableFd);
	}
}

export const STANDARD_ERROR_FD = 2;

/** The value of {@link Predecessor.keeperDescriptor} in the first process, which creates the pipe at its first handover. */
export const OWN_KEEPER = -1;

/** Returns the program at the path of the running program. This is a new release if the file has been replaced. */
function ownProgram(): SuccessorProgram {
	const { argv, execArgv, execPath } = process;
	// The system appends ` (deleted)` to the path if the file was replaced before this process was started from it.
	const file = execPath.replace(/ \(deleted\)$/, '');
	return { file, args: isSea() ? argv.slice(2) : [...execArgv, argv[1]!, ...argv.slice(2)] };
}

/** Returns the program that is running, even if its file has been replaced or removed. */
export function runningProgram(): SuccessorProgram {
	const program = ownProgram();
	return isSea() && existsSync(OWN_EXECUTABLE_PATH) ? { ...program, file: `/proc/${process.pid}/exe` } : program;
}

/** Returns the program of a predecessor, even if its file has been replaced or removed. */
export function keptProgram({ executable, ...program }: KeptProgram): SuccessorProgram {
	return executable === undefined ? program : { ...program, file: `/proc/${process.pid}/fd/${executable}` };
}

/** The path of this process's executable file, on Linux. */
const OWN_EXECUTABLE_PATH = '/proc/self/exe';

/** Opens the executable file of this process. Returns undefined where the system does not offer that. */
function openExecutable(): number | undefined {
	try {
		return openSync(OWN_EXECUTABLE_PATH, 'r');
	} catch {
		return undefined;
	}
}
