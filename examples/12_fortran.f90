! SPDX-License-Identifier: Apache-2.0
!
! The gradient of a flow in Fortran with respect to its initial velocities, in the memory of ten states. The model is
! the viscous Burgers equation on a ring of POINTS points, with central differences in space and Euler's method in time:
!
!     u_i += dt (-u_i (u_{i+1} - u_{i-1}) / (2 dx) + nu (u_{i+1} - 2 u_i + u_{i-1}) / dx^2)
!
! and the loss is the kinetic energy after STEPS steps, J = 1/2 dx sum_i u_i^2. Storing every state takes 8 MB; here
! they take 8 KB, and neap recomputes the others. The gradient is compared with a finite difference.
!
!     gfortran -O2 $(pkg-config --variable=includedir neap)/neap/neap.f90 12_fortran.f90 $(pkg-config --libs neap)
!     ./a.out
!
! A model of one's own replaces the module burgers: one step, what its adjoint needs of it (the tape), and the adjoint.
module burgers
  use, intrinsic :: iso_c_binding
  implicit none
  integer, parameter :: POINTS = 100
  integer(c_int64_t), parameter :: STEPS = 10000
  real(c_double), parameter :: DX = 1d-2, DT = 2d-4, NU = 1d-2

contains

  subroutine step(u)
    real(c_double), intent(inout) :: u(POINTS)
    real(c_double) :: left(POINTS), right(POINTS)

    left = cshift(u, -1)
    right = cshift(u, 1)
    u = u + DT*(-u*(right - left)/(2*DX) + NU*(right - 2*u + left)/DX**2)
  end subroutine

  ! The adjoint of step at the state u.
  subroutine step_back(u, adjoint)
    real(c_double), intent(in) :: u(POINTS)
    real(c_double), intent(inout) :: adjoint(POINTS)
    real(c_double) :: product(POINTS), left(POINTS), right(POINTS)

    product = u*adjoint
    left = cshift(adjoint, -1)
    right = cshift(adjoint, 1)
    adjoint = adjoint + DT*((cshift(product, 1) - cshift(product, -1) &
                             - adjoint*(cshift(u, 1) - cshift(u, -1)))/(2*DX) &
                            + NU*(right - 2*adjoint + left)/DX**2)
  end subroutine

  real(c_double) function energy(u)
    real(c_double), intent(in) :: u(POINTS)
    energy = DX*sum(u**2)/2
  end function

  integer(c_int) function advance(user, state, t0, t1, first) bind(c)
    type(c_ptr), value :: user, state
    integer(c_int64_t), value :: t0, t1
    integer(c_int), value :: first
    real(c_double), pointer :: u(:)
    integer(c_int64_t) :: t

    call c_f_pointer(state, u, [POINTS])
    do t = t0, t1 - 1
      call step(u)
    end do
    advance = 0
  end function

  ! The tape of a step is the state before it.
  integer(c_int) function record(user, state, t0, t1, first, tape, room, used, t_done) bind(c)
    type(c_ptr), value :: user, state, tape
    integer(c_int64_t), value :: t0, t1
    integer(c_int), value :: first
    integer(c_size_t), value :: room
    integer(c_size_t), intent(out) :: used
    integer(c_int64_t), intent(out) :: t_done
    real(c_double), pointer :: u(:), before(:, :)
    integer(c_int64_t) :: t

    call c_f_pointer(state, u, [POINTS])
    call c_f_pointer(tape, before, [int(POINTS, c_int64_t), t1 - t0])
    do t = t0, t1 - 1
      before(:, t - t0 + 1) = u
      call step(u)
    end do
    used = 8*POINTS*(t1 - t0)
    t_done = t1
    record = 0
  end function

  integer(c_int) function turn(user, state, adjoint, loss) bind(c)
    type(c_ptr), value :: user, state, adjoint
    real(c_double), intent(out) :: loss
    real(c_double), pointer :: u(:), gradient(:)

    call c_f_pointer(state, u, [POINTS])
    call c_f_pointer(adjoint, gradient, [POINTS])
    loss = energy(u)
    gradient = DX*u
    turn = 0
  end function

  integer(c_int) function backward(user, adjoint, t1, t0, tape) bind(c)
    type(c_ptr), value :: user, adjoint, tape
    integer(c_int64_t), value :: t0, t1
    real(c_double), pointer :: gradient(:), before(:, :)
    integer(c_int64_t) :: t

    call c_f_pointer(adjoint, gradient, [POINTS])
    call c_f_pointer(tape, before, [int(POINTS, c_int64_t), t1 - t0])
    do t = t1 - 1, t0, -1
      call step_back(before(:, t - t0 + 1), gradient)
    end do
    backward = 0
  end function
end module

program main
  use burgers
  use neap
  implicit none
  real(c_double), parameter :: TINY_SHIFT = 1d-6, TOLERANCE = 1d-6
  type(neap_step_ops) :: ops
  type(neap_sweep_options) :: options
  type(neap_sweep_stats) :: stats
  type(c_ptr) :: sweep
  real(c_double) :: start(POINTS), gradient(POINTS), direction(POINTS), loss, along, difference
  integer :: i

  start = [(sin(2*acos(-1d0)*i/POINTS) + 0.5d0, i=1, POINTS)]
  direction = [(cos(7d0*i), i=1, POINTS)]

  ops%advance = c_funloc(advance)
  ops%record = c_funloc(record)
  ops%turn = c_funloc(turn)
  ops%backward = c_funloc(backward)
  ops%state_bytes = 8*POINTS
  ops%adjoint_bytes = 8*POINTS
  ops%tape_bytes = 8*POINTS
  options%steps = STEPS
  options%memory = 13*832 ! ten states; the live one, its adjoint, a tape. Sizes are multiples of 64

  if (neap_sweep_create(sweep, ops, options) < 0) call fail()
  if (neap_sweep_run(sweep, start, gradient, loss, stats) < 0) call fail()
  call neap_sweep_free(sweep)

  along = dot_product(gradient, direction)
  difference = (final_energy(start + TINY_SHIFT*direction) - final_energy(start - TINY_SHIFT*direction))/(2*TINY_SHIFT)
  print '(a, es12.5, a, i0, a, i0, a)', "energy ", loss, ": ", stats%advance_steps + stats%record_steps, &
    " steps computed in ", stats%arena_bytes, " bytes"
  print '(a, es19.12, a, es19.12)', "gradient along a direction ", along, ", by differences ", difference
  if (abs(loss - final_energy(start)) > 1d-12*loss) error stop "the energy differs from that of a plain loop"
  if (stats%arena_bytes > options%memory) error stop "the arena is larger than the budget"
  if (abs(along - difference) > TOLERANCE*abs(along)) error stop "the gradient is wrong"

contains

  real(c_double) function final_energy(from)
    real(c_double), intent(in) :: from(POINTS)
    real(c_double) :: u(POINTS)
    integer(c_int64_t) :: t

    u = from
    do t = 1, STEPS
      call step(u)
    end do
    final_energy = energy(u)
  end function

  subroutine fail()
    print '(a)', neap_message()
    error stop 1
  end subroutine
end program
