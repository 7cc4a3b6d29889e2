/*
 * shim/arch/x86_64/registers.h: DWARF's numbers of the registers, and those of the running
 * function. System V ABI, AMD64 supplement, section 3.6.2. Used by unwind.c, on the application's
 * threads.
 */
#ifndef CUDASPY_SHIM_REGISTERS_H
#define CUDASPY_SHIM_REGISTERS_H

#include <asm/perf_regs.h>

enum {
	REG_BX = 3,
	REG_BP = 6,
	REG_SP = 7,
	REG_12 = 12,
	REG_13 = 13,
	REG_14 = 14,
	REG_15 = 15,
	REG_IP = 16,
	REGISTERS
};

/* The registers here: those that functions keep for their callers. regs: a uint64_t for each
 * register. */
#define CAPTURE(regs) \
	__asm__ volatile("movq %%rbx, %c1(%0)\n\tmovq %%rbp, %c2(%0)\n\tmovq %%rsp, %c3(%0)\n\t" \
			 "movq %%r12, %c4(%0)\n\tmovq %%r13, %c5(%0)\n\tmovq %%r14, %c6(%0)\n\t" \
			 "movq %%r15, %c7(%0)\n\tleaq 1f(%%rip), %%rax\n1:\n\tmovq %%rax, %c8(%0)" \
			 : \
			 : "r"(regs), "i"(8 * REG_BX), "i"(8 * REG_BP), "i"(8 * REG_SP), \
			   "i"(8 * REG_12), "i"(8 * REG_13), "i"(8 * REG_14), "i"(8 * REG_15), \
			   "i"(8 * REG_IP) \
			 : "rax", "memory")

/* Those of them that perf_event_open(2) is asked for (asm/perf_regs.h), and in the order in which it writes them. */
#define REGISTERS_KEPT 8
#define PERF_REGISTERS \
	(1ull << PERF_REG_X86_BX | 1ull << PERF_REG_X86_BP | 1ull << PERF_REG_X86_SP | \
	 1ull << PERF_REG_X86_IP | 1ull << PERF_REG_X86_R12 | 1ull << PERF_REG_X86_R13 | \
	 1ull << PERF_REG_X86_R14 | 1ull << PERF_REG_X86_R15)
static const unsigned char spy_registers_kept[REGISTERS_KEPT] = {REG_BX, REG_BP, REG_SP, REG_IP,
								 REG_12, REG_13, REG_14, REG_15};

#define CAPTURED (1u << REG_BX | 1u << REG_BP | 1u << REG_SP | 0xfu << REG_12 | 1u << REG_IP)

#endif
