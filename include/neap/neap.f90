! SPDX-License-Identifier: Apache-2.0
!
! neap.f90: the Fortran module `neap`, which runs the forward and backward pass of a time-stepping model in Fortran with
! a memory budget, through neap/sweep.h.
!
! Compile this file together with a program; the types match the installed headers, and every component has the default
! value 0 or null:
!
!     gfortran $(pkg-config --variable=includedir neap)/neap/neap.f90 program.f90 $(pkg-config --libs neap)
!
! Callbacks are functions with bind(c) and the arguments of neap/sweep.h; set a component of neap_step_ops to
! c_funloc(callback). The state is passed as type(c_ptr), value; c_f_pointer converts it to an array. Functions return 0
! or a negative code; neap_message() returns the line that describes the last failure. Other functions of the headers,
! such as those of neap/tier.h for slow memory, can be bound in the same way.
module neap
  use, intrinsic :: iso_c_binding
  implicit none
  private
  public :: neap_sweep_create, neap_sweep_run, neap_sweep_free, neap_message

  ! Parameters of a strategy; 0: the best value is chosen.
  type, bind(c), public :: neap_params
    integer(c_int64_t) :: chunk = 0, checkpoints = 0, remote_chunk = 0, interval = 0, period = 0, group = 0
    integer(c_int64_t) :: tail = 0, kept_tapes = 0, effort = 0, reserved(4) = 0
  end type

  ! The model: its callbacks, and the bytes of its state, adjoint and tape.
  type, bind(c), public :: neap_step_ops
    integer(c_int32_t) :: size = 0, reserved = 0
    type(c_funptr) :: advance = c_null_funptr, record = c_null_funptr, turn = c_null_funptr
    type(c_funptr) :: backward = c_null_funptr
    integer(c_size_t) :: state_bytes = 0, adjoint_bytes = 0, tape_bytes = 0, tape_max_bytes = 0
    type(c_funptr) :: save = c_null_funptr, load = c_null_funptr, will_touch = c_null_funptr
    type(c_funptr) :: grad_save = c_null_funptr, grad_load = c_null_funptr, ended = c_null_funptr
    type(c_funptr) :: advance_log = c_null_funptr, replay = c_null_funptr
    integer(c_size_t) :: log_bytes = 0, log_max_bytes = 0, tape_mean_bytes = 0, live_bytes = 0, adjoint_real = 0
    type(c_ptr) :: memory = c_null_ptr
    integer(c_int64_t) :: record_steps = 0
    type(c_funptr) :: fence = c_null_funptr
  end type

  ! The chain, the budget and the planning options; strategy: c_loc of a string with c_null_char at its end, or
  ! c_null_ptr for auto.
  type, bind(c), public :: neap_sweep_options
    integer(c_int32_t) :: size = 0
    integer(c_int) :: ntiers = 0
    integer(c_int64_t) :: steps = 0, memory = 0
    type(c_ptr) :: strategy = c_null_ptr
    type(neap_params) :: params
    type(c_ptr) :: tiers = c_null_ptr
    real(c_double) :: advance = 0, record = 0, backward = 0
    type(c_funptr) :: interrupted = c_null_funptr
    type(c_ptr) :: interrupted_user = c_null_ptr, saved = c_null_ptr, journal = c_null_ptr
    real(c_double) :: journal_seconds = 0
    integer(c_int64_t) :: journal_key = 0
    integer(c_int) :: journal_in_memory = 0
    real(c_double) :: replay = 0
    type(c_ptr) :: trace = c_null_ptr
    real(c_double) :: slot_write = 0, slot_read = 0, patience = 0, call = 0
    integer(c_int) :: no_replan = 0
    type(c_funptr) :: agree = c_null_funptr, leave = c_null_funptr
    type(c_ptr) :: agree_user = c_null_ptr, journal_suffix = c_null_ptr
    integer(c_int) :: check = 0, reserved = 0
  end type

  ! Statistics of a run: bytes, steps and seconds.
  type, bind(c), public :: neap_sweep_stats
    integer(c_int32_t) :: size = 0, reserved = 0
    integer(c_int64_t) :: arena_bytes = 0, peak_planned = 0, peak_measured = 0, advance_steps = 0, record_steps = 0
    integer(c_int64_t) :: backward_steps = 0, written(8) = 0, read(8) = 0
    real(c_double) :: seconds = 0, compute = 0, advance = 0, record = 0, backward = 0, stall = 0, predicted = 0
    real(c_double) :: predicted_stall = 0
    integer(c_int64_t) :: tape_bytes = 0, tape_largest = 0, overflows = 0, recoveries = 0, recomputed = 0
    integer(c_int64_t) :: resident_growth = 0, moved = 0, commits = 0, commits_failed = 0
    real(c_double) :: journal = 0
    integer(c_int64_t) :: spared = 0, replay_steps = 0
    real(c_double) :: replay = 0
    integer(c_int64_t) :: log_bytes = 0, logged_steps = 0
    real(c_double) :: stalls(5) = 0, copies = 0, slowdown = 0, predicted_lost = 0, lost = 0
    integer(c_int64_t) :: late = 0, advance_calls = 0, record_calls = 0, backward_calls = 0, measured_steps = 0
    integer(c_int64_t) :: replans = 0
    real(c_double) :: foreseen = 0
    integer(c_int) :: started_over = 0
    integer(c_int32_t) :: reserved2 = 0
  end type

  ! Frees a sweep; c_null_ptr is allowed.
  interface
    subroutine neap_sweep_free(sweep) bind(c)
      import :: c_ptr
      type(c_ptr), value :: sweep
    end subroutine
  end interface

  interface
    integer(c_int) function create_sweep(sweep, ops, user, options) bind(c, name="neap_sweep_create")
      import :: c_int, c_ptr, neap_step_ops, neap_sweep_options
      type(c_ptr), intent(out) :: sweep
      type(neap_step_ops), intent(in) :: ops
      type(c_ptr), value :: user
      type(neap_sweep_options), intent(in) :: options
    end function

    integer(c_int) function run_sweep(sweep, x0, dx0, loss, stats) bind(c, name="neap_sweep_run")
      import :: c_int, c_ptr, c_double, neap_sweep_stats
      type(c_ptr), value :: sweep
      type(*), intent(in) :: x0(*)
      type(*) :: dx0(*)
      real(c_double), intent(out) :: loss
      type(neap_sweep_stats), intent(inout) :: stats
    end function

    type(c_ptr) function detail() bind(c, name="neap_detail")
      import :: c_ptr
    end function

    integer(c_size_t) function strlen(text) bind(c)
      import :: c_size_t, c_ptr
      type(c_ptr), value :: text
    end function
  end interface

contains

  ! Creates a sweep, and its plan for a budget of options%memory bytes. `user` is the first argument of each callback.
  integer(c_int) function neap_sweep_create(sweep, ops, options, user) result(code)
    type(c_ptr), intent(out) :: sweep
    type(neap_step_ops), intent(in) :: ops
    type(neap_sweep_options), intent(in) :: options
    type(c_ptr), intent(in), optional :: user
    type(neap_step_ops) :: sized_ops
    type(neap_sweep_options) :: sized_options
    type(c_ptr) :: first

    sized_ops = ops
    sized_ops%size = int(c_sizeof(sized_ops), c_int32_t)
    sized_options = options
    sized_options%size = int(c_sizeof(sized_options), c_int32_t)
    first = c_null_ptr
    if (present(user)) first = user
    sweep = c_null_ptr
    code = create_sweep(sweep, sized_ops, first, sized_options)
  end function

  ! Runs one forward and backward pass from the state x0; sets the loss, and dx0 to its gradient with respect to x0.
  integer(c_int) function neap_sweep_run(sweep, x0, dx0, loss, stats) result(code)
    type(c_ptr), intent(in) :: sweep
    type(*), intent(in) :: x0(*)
    type(*) :: dx0(*)
    real(c_double), intent(out) :: loss
    type(neap_sweep_stats), intent(out), optional :: stats
    type(neap_sweep_stats) :: found

    found%size = int(c_sizeof(found), c_int32_t)
    code = run_sweep(sweep, x0, dx0, loss, found)
    if (present(stats)) stats = found
  end function

  ! The line that describes the last failure of a call; empty if there was none.
  function neap_message() result(text)
    character(len=:), allocatable :: text
    character(kind=c_char), pointer :: letters(:)
    type(c_ptr) :: line
    integer :: i

    line = detail()
    call c_f_pointer(line, letters, [strlen(line)])
    allocate (character(len=size(letters)) :: text)
    do i = 1, size(letters)
      text(i:i) = letters(i)
    end do
  end function
end module
